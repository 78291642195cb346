import { connect, createServer, type Socket } from 'node:net'
import { listenLocally } from './ports.ts'

/**
 * Chooses the fault of a message to the server. It gets what follows the type and the
 * length, such as the SQL of a simple query. A spoilt message is replaced by one that
 * fails. After a message that is cut, the connection ends.
 */
export type Tamper = (body: string) => 'spoil' | 'cut' | undefined

const withoutFault: Tamper = () => undefined

/** Stands between the store and its server, where networks fail. */
export type FaultyProxy = Awaited<ReturnType<typeof startProxy>>

/** Starts a proxy between the store and its server. */
export async function startProxy(databaseUrl: string) {
  const url = new URL(databaseUrl)
  const serverPort = Number(url.port)
  const sockets = new Set<Socket>()
  /** How many more pieces of answers pass. */
  let answersLeft = Number.POSITIVE_INFINITY
  let tamper = withoutFault

  const listener = createServer(client => {
    const server = connect(serverPort, '127.0.0.1')
    for (const socket of [client, server]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => sockets.delete(socket))
    }
    /** The beginning of a message that is not complete. */
    let rest: Buffer = Buffer.alloc(0)
    client.on('data', (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk])
      for (const message of messagesIn(rest)) {
        rest = rest.subarray(message.length)
        const fault = send(message, server, tamper)
        if (fault === 'cut') {
          client.destroy()
          return
        }
      }
    })
    // The server still runs what it has got.
    client.on('close', () => server.end())
    server.on('data', chunk => {
      if (answersLeft-- > 0) {
        client.write(chunk)
      }
    })
    server.on('close', () => client.destroy())
  })
  const port = await listenLocally(listener)
  url.host = `127.0.0.1:${port}`

  const endConnections = () => {
    for (const socket of sockets) {
      socket.destroy()
    }
  }
  return {
    url: url.href,
    /** Gives every message from now on the fault that `by` chooses. */
    tamper(by = withoutFault) {
      tamper = by
    },
    /** Lets this many more pieces of answers pass. */
    swallowAnswersAfter(pieces: number) {
      answersLeft = pieces
    },
    /** Ends all connections. New ones are good again. */
    cut() {
      answersLeft = Number.POSITIVE_INFINITY
      endConnections()
    },
    /** Ends all connections, and refuses new ones until `accept`. */
    refuse() {
      listener.close()
      endConnections()
    },
    accept: () => listenLocally(listener, port),
    async [Symbol.asyncDispose]() {
      endConnections()
      await listener[Symbol.asyncDispose]()
    },
  }
}

/** Sends a message with the fault that is chosen for it, and returns that. */
function send(message: Buffer, server: Socket, tamper: Tamper) {
  const fault = isFirst(message) ? undefined : tamper(message.toString('utf8', 5))
  server.write(fault === 'spoil' ? spoilt(message) : message)
  return fault
}

/** The first message of a connection has no type, and begins with its length. */
const isFirst = (message: Buffer) => message[0] === 0

/** Returns the messages that are complete. */
function* messagesIn(bytes: Buffer) {
  let start = 0
  for (;;) {
    const message = bytes.subarray(start)
    const lengthStart = isFirst(message) ? 0 : 1
    if (message.length < lengthStart + 4) {
      return
    }
    const length = lengthStart + message.readInt32BE(lengthStart)
    if (message.length < length) {
      return
    }
    yield message.subarray(0, length)
    start += length
  }
}

/**
 * Returns a message that fails in place of another. The server cancels a simple query, as
 * `pg_cancel_backend` does. Other messages name a portal that does not exist.
 */
function spoilt(message: Buffer): Buffer {
  const type = message.toString('latin1', 0, 1)
  const isSync = type === 'S'
  if (isSync) {
    return message
  }
  const isSimpleQuery = type === 'Q'
  return isSimpleQuery
    ? wireMessage('Q', 'select pg_cancel_backend(pg_backend_pid()), pg_sleep(60)\0')
    : wireMessage('E', 'none\0\0\0\0\0')
}

/** Returns a message of PostgreSQL's protocol. */
export function wireMessage(type: string, body: string): Buffer {
  const message = Buffer.from(`${type}\0\0\0\0${body}`)
  message.writeInt32BE(message.length - 1, 1)
  return message
}
