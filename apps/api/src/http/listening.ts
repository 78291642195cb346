import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { codeOf, messageOf } from '@plant-store/engine'
import type { Config } from '../config.ts'

/**
 * Returns the port, or a free one for port 0, if nothing listens on it. The threads
 * cannot notice that: SO_REUSEPORT shares the port with any process that sets it.
 *
 * @throws Error in one line that names the variable to change
 */
export async function findPort({ host, port }: Config): Promise<number> {
  await using probe = createServer()
  probe.listen(port, host)
  try {
    await once(probe, 'listening')
  } catch (cause) {
    throw new Error(refusalOf(cause), { cause })
  }
  // It is not the name of a pipe.
  return (probe.address() as AddressInfo).port
}

function refusalOf(cause: unknown) {
  const reason = messageOf(cause).replace(/^listen \w+: /, '')
  if (['EADDRINUSE', 'EACCES'].includes(codeOf(cause))) {
    return `cannot listen on PORT: ${reason}`
  }
  return `HOST must be a name or an address of this machine: ${reason}`
}

/** Returns the URL of the service on this machine. */
export function listeningUrl({ host, port, baseUrl }: Config): string {
  const path = baseUrl === undefined ? '' : new URL(baseUrl).pathname.replace(/\/$/, '')
  const hostInUrl = host.includes(':') ? `[${host}]` : host
  return `http://${hostInUrl}:${port}${path}`
}
