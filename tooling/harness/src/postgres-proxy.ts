import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { listenLocally } from './ports.ts'

/**
 * A fault of a message to the server. A spoilt message is replaced by one that fails.
 * After a message that is cut, the connection ends.
 */
export type Fault = 'spoil' | 'cut' | undefined

/**
 * Chooses the fault of a message. It gets the SQL of a simple query, and the type of any
 * other message, such as `E` for Execute.
 */
export type Tamper = (message: string) => Fault

const withoutFault: Tamper = () => undefined

/** Starts a proxy between the store and its server. */
export async function startProxy(databaseUrl: string): Promise<FaultyProxy> {
  const listener = createServer()
  const port = await listenLocally(listener)
  return new FaultyProxy(databaseUrl, listener, port)
}

/** Stands between the store and its server, where networks fail. */
export class FaultyProxy implements AsyncDisposable {
  readonly url: string
  readonly #listener: Server
  readonly #serverPort: number
  readonly #sockets = new Set<Socket>()
  /** How many more pieces of answers pass. */
  #answersLeft = Number.POSITIVE_INFINITY
  #tamper = withoutFault

  constructor(databaseUrl: string, listener: Server, port: number) {
    const url = new URL(databaseUrl)
    this.#serverPort = Number(url.port)
    url.host = `127.0.0.1:${port}`
    this.url = url.href
    this.#listener = listener
    listener.on('connection', client => this.#onConnection(client))
  }

  /** Gives every message from now on the fault that `by` chooses. */
  tamper(by: Tamper = withoutFault): void {
    this.#tamper = by
  }

  /** Lets so many more pieces of answers through. */
  swallowAnswersAfter(pieces: number): void {
    this.#answersLeft = pieces
  }

  /** Ends all connections. New ones are good again. */
  cut(): void {
    this.#answersLeft = Number.POSITIVE_INFINITY
    this.#endConnections()
  }

  /** Ends all connections, and refuses new ones until `accept`. */
  refuse(): void {
    this.#listener.close()
    this.#endConnections()
  }

  async accept(): Promise<void> {
    await listenLocally(this.#listener, Number(new URL(this.url).port))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = this.#listener.listening && once(this.#listener, 'close')
    this.refuse()
    await closed
  }

  #onConnection(client: Socket): void {
    const server = connect(this.#serverPort, '127.0.0.1')
    for (const socket of [client, server]) {
      this.#sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => this.#sockets.delete(socket))
    }
    const reader = new MessageReader()
    client.on('data', (chunk: Buffer) => {
      this.#onRequest(client, server, reader.read(chunk))
    })
    // The server still runs what it has got.
    client.on('close', () => server.end())
    server.on('data', chunk => {
      if (this.#answersLeft-- > 0) {
        client.write(chunk)
      }
    })
    server.on('close', () => client.destroy())
  }

  #onRequest(client: Socket, server: Socket, messages: readonly Message[]): void {
    for (const message of messages) {
      const fault = message.name === undefined ? undefined : this.#tamper(message.name)
      server.write(fault === 'spoil' ? spoilt(message) : message.bytes)
      if (fault === 'cut') {
        client.destroy()
        return
      }
    }
  }

  #endConnections(): void {
    for (const socket of this.#sockets) {
      socket.destroy()
    }
  }
}

interface Message {
  /** Absent for the first message of a connection. */
  readonly name: string | undefined
  readonly bytes: Buffer
}

/** Divides what a client sends into messages. */
class MessageReader {
  /** The beginning of a message that is not complete. */
  #rest: Buffer = Buffer.alloc(0)
  /** Whether the next message is the first of its connection, which has no type. */
  #isFirst = true

  /** Returns the messages that are complete with this chunk. */
  read(chunk: Buffer): readonly Message[] {
    this.#rest = Buffer.concat([this.#rest, chunk])
    const messages: Message[] = []
    for (;;) {
      const message = this.#next()
      if (message === undefined) {
        return messages
      }
      messages.push(message)
    }
  }

  #next(): Message | undefined {
    const lengthStart = this.#isFirst ? 0 : 1
    if (this.#rest.length < lengthStart + 4) {
      return undefined
    }
    const end = lengthStart + this.#rest.readInt32BE(lengthStart)
    if (this.#rest.length < end) {
      return undefined
    }

    const bytes = this.#rest.subarray(0, end)
    const name = this.#isFirst ? undefined : nameOf(bytes)
    this.#rest = this.#rest.subarray(end)
    this.#isFirst = false
    return { name, bytes }
  }
}

const simpleQuery = 'Q'
const sync = 'S'

function nameOf(bytes: Buffer): string {
  const type = bytes.toString('latin1', 0, 1)
  if (type !== simpleQuery) {
    return type
  }
  const sql = bytes.subarray(5, -1)
  return sql.toString().trim()
}

/**
 * Returns a message that fails in place of another. The server cancels a simple query, as
 * `pg_cancel_backend` does. Other messages name a portal that does not exist.
 */
function spoilt({ name, bytes }: Message): Buffer {
  if (name === sync) {
    return bytes
  }
  const isSimpleQuery = bytes.toString('latin1', 0, 1) === simpleQuery
  return isSimpleQuery
    ? wireMessage(
        simpleQuery,
        'select pg_cancel_backend(pg_backend_pid()), pg_sleep(60)\0',
      )
    : wireMessage('E', 'none\0\0\0\0\0')
}

/** Returns a message of PostgreSQL's protocol. */
export function wireMessage(type: string, body: string): Buffer {
  const message = Buffer.from(`${type}\0\0\0\0${body}`)
  message.writeInt32BE(message.length - 1, 1)
  return message
}
