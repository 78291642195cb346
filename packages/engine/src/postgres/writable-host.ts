import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { messageOf } from '../errors.ts'
import type { PostgresOptions } from '../types.ts'
import { HostPool, type Server } from './host-pool.ts'
import type { WarningListener } from './server-warnings.ts'

/** The pause after an attempt in which no host could be taken. */
const askAgainAfterMs = 100

/**
 * How long the other hosts may take to answer once one accepts writes. A host that takes
 * longer counts as dead.
 */
const otherHostsMs = 1_000

/**
 * Finds the host that accepts writes. A store that is only read also takes one that does
 * not, if there is no other.
 *
 * - Unknown, at first and after a failure: the next transaction asks all hosts at once.
 * - Asked: transactions wait for the answer.
 * - Found: transactions connect to the host, until one fails or idle connections end.
 * - Refused: no host accepts writes, or several do. Transactions fail. After a pause the
 *   host is unknown again.
 *
 * It must never choose between two servers that accept writes, because changes on one
 * would be missing on the other.
 */
export class WritableHost {
  readonly #hosts: readonly HostPool[]
  readonly #mayBeReadOnly: boolean
  /** Absent while the host is unknown. */
  #answer: Promise<HostPool> | undefined

  constructor(
    options: PostgresOptions,
    connectionsMax: number,
    onWarning: WarningListener = () => {},
  ) {
    this.#mayBeReadOnly = options.mayBeReadOnly ?? false
    const listeners = { onLost: () => this.forget(), onWarning }
    this.#hosts = options.hosts.map(
      host => new HostPool(host, options, connectionsMax, listeners),
    )
  }

  /** @throws Error with the reason of each host */
  async connect(): Promise<pg.PoolClient> {
    this.#answer ??= this.#ask()
    const host = await this.#answer
    try {
      return await host.connect()
    } catch (error) {
      this.forget()
      throw error
    }
  }

  /** To be called after a failure, because the server may have become read-only. */
  forget(): void {
    this.#answer = undefined
  }

  async end(): Promise<void> {
    await Promise.all(this.#hosts.map(host => host.end()))
  }

  #ask(): Promise<HostPool> {
    const answer = findHost(this.#hosts, this.#mayBeReadOnly)
    answer.catch(() => setTimeout(() => this.forget(), askAgainAfterMs).unref())
    return answer
  }
}

/**
 * Asks all hosts at once, so that a dead one costs little time.
 *
 * @param mayBeReadOnly whether a host that only reads will do if none accepts writes
 * @throws Error if none accepts writes, or if several servers do
 */
async function findHost(
  hosts: readonly HostPool[],
  mayBeReadOnly: boolean,
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

  refuseSeveral([...accepting.values()])
  const [host] = [...accepting.keys(), ...readOnly]
  assert(host !== undefined, 'a host has answered')
  return host
}

/** @throws Error unless all are names of one server */
function refuseSeveral(servers: readonly Server[]): void {
  const starts = new Set(servers.map(({ startedAt }) => startedAt))
  if (starts.size > 1) {
    const names = servers.map(({ name }) => name).sort()
    throw new Error(
      `${names.join(' and ')} both accept writes: stop the one that is not the primary`,
    )
  }
}

function describe(error: Error): string {
  // pg's message names an internal detail.
  if (/client password must be|^empty password/.test(error.message)) {
    return 'it requires a password, and neither the URL nor PGPASSWORD has one'
  }
  return messageOf(error)
}
