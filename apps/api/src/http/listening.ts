import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
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
    const { code = '', message } = cause as NodeJS.ErrnoException
    const why = message.replace(/^listen \w+: /, '')
    const isPort = ['EADDRINUSE', 'EACCES'].includes(code)
    const what = isPort
      ? 'cannot listen on PORT'
      : 'HOST must be a name or an address of this machine'
    throw new Error(`${what}: ${why}`, { cause })
  }
  return (probe.address() as AddressInfo).port
}

export function listeningUrl({ host, port, baseUrl }: Config): string {
  const path = baseUrl === undefined ? '' : new URL(baseUrl).pathname.replace(/\/$/, '')
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}${path}`
}
