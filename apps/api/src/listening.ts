import { once } from 'node:events'
import { type AddressInfo, createServer, type Server } from 'node:net'
import type { Config } from './config.ts'

/** @throws Error in one line that names the variable to change */
export async function listen(
  server: Server,
  host: string,
  port: number,
  variable: 'PORT' | 'METRICS_PORT',
): Promise<void> {
  server.listen(port, host)
  try {
    await once(server, 'listening')
  } catch (cause) {
    const { code = '', message } = cause as NodeJS.ErrnoException
    const why = message.replace(/^listen \w+: /, '')
    if (['EADDRINUSE', 'EACCES'].includes(code)) {
      throw new Error(`${variable} cannot be listened on: ${why}`, { cause })
    }
    throw new Error(`HOST must be a name or an address of this machine: ${why}`, { cause })
  }
}

/**
 * Returns the port, or a free one for port 0, if nobody listens on it. Threads that listen cannot tell: they share the
 * port with every process that shares it.
 */
export async function findPort({ host, port }: Config): Promise<number> {
  await using probe = createServer()
  await listen(probe, host, port, 'PORT')
  return (probe.address() as AddressInfo).port
}

/**
 * Keeps other processes of this program from starting on a port until this is disposed of. Between {@link findPort} and
 * the threads' own listening the port is free. Only on Linux do threads share a port.
 *
 * @throws Error in one line when another process is starting there
 */
export async function claimStart({ host, port }: Config): Promise<AsyncDisposable | undefined> {
  if (process.platform !== 'linux' || port === 0) return undefined
  const name = `plant-store is starting on ${host}:${port}`
  // In the abstract namespace: it belongs to the network as ports do, and ends with its process.
  const claim = createServer(socket => socket.destroy()).listen(`\0${name}`)
  try {
    await once(claim, 'listening')
    return claim
  } catch (cause) {
    // A sandbox without such names, or a host that is too long for one: then without the claim.
    if ((cause as NodeJS.ErrnoException).code !== 'EADDRINUSE') return undefined
    throw new Error(`PORT cannot be listened on: another ${name}`, { cause })
  }
}

export function listeningUrl({ host, port, baseUrl }: Config): string {
  const path = baseUrl === undefined ? '' : new URL(baseUrl).pathname.replace(/\/$/, '')
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}${path}`
}
