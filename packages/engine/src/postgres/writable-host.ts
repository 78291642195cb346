import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../errors.ts'
import type { HostPool, Server } from './host-pool.ts'

/**
 * How long the other hosts may take to answer once one accepts writes. A host that takes
 * longer counts as dead.
 */
const otherHostsMs = 1_000

/**
 * Finds the host that accepts writes. Asks all hosts at once, so that a dead one costs
 * little time.
 *
 * It must never choose between two servers that accept writes, because changes on one
 * would be missing on the other.
 *
 * @param mayBeReadOnly whether a host that only reads will do if none accepts writes
 * @throws Error if none accepts writes, or if several servers do
 */
export async function findWritableHost(
  hosts: readonly HostPool[],
  mayBeReadOnly = false,
): Promise<HostPool> {
  const accepting = new Map<HostPool, Server>()
  const readOnly: HostPool[] = []
  const answers = hosts.map(async host => {
    const server = await host.askServer()
    if (!server.isReadOnly) {
      accepting.set(host, server)
      return
    }
    readOnly.push(host)
    throw new Error(`${server.name} does not accept writes`)
  })
  await Promise.any(answers).catch((cause: AggregateError) => {
    if (!mayBeReadOnly || readOnly.length === 0) {
      const reasons = new Set(cause.errors.map(describe))
      throw new Error([...reasons].join('; '), { cause })
    }
  })
  const patience = sleep(otherHostsMs, undefined, { ref: false })
  await Promise.race([Promise.allSettled(answers), patience])

  // They may be names of one server.
  const servers = [...accepting.values()]
  const starts = new Set(servers.map(({ startedAt }) => startedAt))
  if (starts.size > 1) {
    const names = servers.map(({ name }) => name).sort()
    throw new Error(
      `${names.join(' and ')} both accept writes: stop the one that is not the primary`,
    )
  }
  const [host] = [...accepting.keys(), ...readOnly]
  assert(host !== undefined, 'a host has answered')
  return host
}

function describe(error: Error) {
  // pg's messages name internal details.
  if (error.message.startsWith('Unknown authenticationOk')) {
    return 'it requires another authentication than a password or a certificate, such as GSS'
  }
  if (/client password must be|^empty password/.test(error.message)) {
    return 'it requires a password, and neither the URL nor PGPASSWORD has one'
  }
  return messageOf(error)
}
