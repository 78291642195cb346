import { once } from 'node:events'
import type { Server } from 'node:net'

/**
 * Listens on the port that a variable gives.
 *
 * @throws Error in one line that names the variable to change
 */
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
      throw new Error(`${variable} can not be listened on: ${why}`, { cause })
    }
    throw new Error(`HOST must be a name or an address of this machine: ${why}`, { cause })
  }
}
