import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import type { Config } from '../config.ts'

/**
 * Returns the port, or a free one for port 0, if nothing listens on it. The threads cannot notice that: SO_REUSEPORT
 * shares the port with any process that sets it.
 *
 * @throws Error in one line that names the variable to change
 */
export async function findPort({ host, port }: Config): Promise<number> {
  await using probe = createServer()
  probe.listen(port, host)
  try {
    await once(probe, 'listening')
  } catch (cause) {
    const { code = '', message } = cause as NodeJS.ErrnoException
    const why = message.replace(/^listen \w+: /, '')
    const isPort = ['EADDRINUSE', 'EACCES'].includes(code)
    const what = isPort ? 'cannot listen on PORT' : 'HOST must be a name or an address of this machine'
    throw new Error(`${what}: ${why}`, { cause })
  }
  return (probe.address() as AddressInfo).port
}

/**
 * Keeps other processes of this program from starting on the port until it is disposed of. The port is free between
 * {@link findPort} and the threads' own listening. Only on Linux do threads share a port.
 *
 * @throws Error in one line if another process is starting on the port
 */
export async function lockStart({ host, port }: Config): Promise<AsyncDisposable | undefined> {
  if (process.platform !== 'linux' || port === 0) return undefined
  const name = `plant-store is starting on ${host}:${port}`
  // An abstract socket belongs to the network namespace, as ports do, and ends with its process.
  const lock = createServer(socket => socket.destroy()).listen(`\0${name}`)
  try {
    await once(lock, 'listening')
    return lock
  } catch (cause) {
    // Some sandboxes have no abstract sockets, and a host can be too long for a name. Then there is no lock.
    if ((cause as NodeJS.ErrnoException).code !== 'EADDRINUSE') return undefined
    throw new Error(`cannot listen on PORT: another ${name}`, { cause })
  }
}

export function listeningUrl({ host, port, baseUrl }: Config): string {
  const path = baseUrl === undefined ? '' : new URL(baseUrl).pathname.replace(/\/$/, '')
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}${path}`
}
