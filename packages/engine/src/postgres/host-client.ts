import { Socket } from 'node:net'
import pg from 'pg'
import { parseIntoClientConfig } from 'pg-connection-string'
import { messageOf } from '../errors.ts'
import { reportWarning, type WarningListener } from './server-warnings.ts'

/**
 * A client of one host. If it cannot connect, at whatever step, it destroys its socket:
 * pg only ends its own side, or leaves the socket open if it cannot set up TLS.
 */
export class HostClient extends pg.Client {
  /** The socket to the server, below TLS. */
  readonly #socket: Socket

  constructor(
    { connectionString = '', ...options }: pg.ClientConfig,
    onWarning: WarningListener,
  ) {
    const socket = new Socket()
    super({ ...options, ...configOf(connectionString, socket), stream: () => socket })
    this.#socket = socket
    const destroy = () => void socket.destroy()
    this.connection.on('error', destroy)
    this.connection.on('errorMessage', destroy)
    this.once('connect', () => this.connection.off('errorMessage', destroy))

    // It listens from the start, because the server may warn while it lets a client in.
    this.on('notice', notice => reportWarning(notice, onWarning))
    // Queries in progress reject anyway. Without a listener the process would end.
    this.on('error', () => {})
  }

  /** Makes settings for the session, as the last step of connecting. */
  async prepare(settings: string): Promise<void> {
    try {
      await this.query(settings)
    } catch (error) {
      this.#socket.destroy()
      throw error
    }
  }
}

/**
 * Reads the URL of a host, and the files that it names. It does so for each connection,
 * because certificates are renewed. If a file cannot be read, the socket fails with the
 * reason: the pool calls the constructor where an error would end the process.
 */
function configOf(url: string, socket: Socket): pg.ClientConfig {
  try {
    const config = parseIntoClientConfig(url)
    // pg-connection-string leaves a # in the name of a database encoded.
    const { dbname } = config as { readonly dbname?: string }
    return dbname === undefined ? config : { ...config, database: dbname }
  } catch (cause) {
    const fault = new Error(messageOf(cause), { cause })
    socket.connect = () => socket.destroy(fault)
    return {}
  }
}
