import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** What happens to a message to the server: it is replaced by one that fails, or the connection ends after it. */
export type Fault = 'spoil' | 'cut' | undefined

/** Of a simple query its SQL, and of other messages their type, such as `E` for Execute. */
export type Tamper = (message: string) => Fault

/** Stands between the store and its server, where networks fail. */
export async function startProxy(databaseUrl: string) {
  const port = Number(new URL(databaseUrl).port)
  const sockets = new Set<Socket>()
  let answersMax = Number.POSITIVE_INFINITY
  let tamper: Tamper = () => undefined
  const listener = createServer(near => {
    const far = connect(port, '127.0.0.1')
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    }
    const take = messageTaker()
    near
      .on('data', (chunk: Buffer) => {
        for (const message of take(chunk)) {
          const fault = message.name === undefined ? undefined : tamper(message.name)
          far.write(fault === 'spoil' ? spoiled(message) : message.bytes)
          if (fault !== 'cut') {
            continue
          }
          near.destroy()
          return
        }
      })
      // The server still runs what it has got.
      .on('close', () => far.end())
    far
      .on('data', chunk => {
        if (answersMax-- > 0) {
          near.write(chunk)
        }
      })
      .on('close', () => near.destroy())
  }).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const cut = () => {
    for (const socket of sockets) {
      socket.destroy()
    }
  }
  const url = new URL(databaseUrl)
  url.host = `127.0.0.1:${(listener.address() as AddressInfo).port}`
  return {
    url: url.href,
    /** Asks for the fault of each message from now on. */
    tamper(by: Tamper = () => undefined) {
      tamper = by
    },
    /** Lets so many more pieces of answers through. */
    swallowAnswersAfter(pieces: number) {
      answersMax = pieces
    },
    /** Ends all connections; new ones are good again. */
    cut() {
      answersMax = Number.POSITIVE_INFINITY
      cut()
    },
    async [Symbol.asyncDispose]() {
      listener.close()
      cut()
      await once(listener, 'close')
    },
  }
}

interface Message {
  /** Absent for the first message of a connection. */
  readonly name: string | undefined
  readonly bytes: Buffer
}

/** Returns a function that takes what a client sends, and returns the messages that are complete. */
function messageTaker() {
  let rest: Buffer<ArrayBufferLike> = Buffer.alloc(0)
  let isFirst = true
  return (chunk: Buffer): Message[] => {
    rest = Buffer.concat([rest, chunk])
    const messages: Message[] = []
    for (;;) {
      const start = isFirst ? 0 : 1
      if (rest.length < start + 4) {
        return messages
      }
      const length = start + rest.readInt32BE(start)
      if (rest.length < length) {
        return messages
      }
      const bytes = rest.subarray(0, length)
      const type = String.fromCharCode(bytes[0] as number)
      const name = isFirst
        ? undefined
        : type === 'Q'
          ? bytes.toString('utf8', 5, length - 1).trim()
          : type
      messages.push({ name, bytes })
      rest = rest.subarray(length)
      isFirst = false
    }
  }
}

/** A simple query is cancelled by the server, as `pg_cancel_backend` does. Others name a portal that does not exist. */
function spoiled({ name, bytes }: Message): Buffer {
  if (name === 'S') {
    return bytes
  }
  const body =
    bytes[0] === 'Q'.charCodeAt(0)
      ? 'Qselect pg_cancel_backend(pg_backend_pid()), pg_sleep(60)\0'
      : 'Enone\0\0\0\0\0'
  const message = Buffer.concat([
    Buffer.from(body.slice(0, 1)),
    Buffer.alloc(4),
    Buffer.from(body.slice(1)),
  ])
  message.writeInt32BE(message.length - 1, 1)
  return message
}
