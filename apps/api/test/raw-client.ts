import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** An answer as it came over the wire: nothing of it is missing, and nothing came after it. */
export interface RawAnswer {
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  readonly body: string
}

/** One connection, with what was sent and received on it under full control. */
export interface RawClient {
  readonly socket: Socket
  send(text: string): void
  /**
   * Resolves to the next whole answer, or to `undefined` once the connection ended without a byte of one.
   *
   * @throws Error when the connection ends within an answer
   */
  answer(): Promise<RawAnswer | undefined>
}

export async function connectRaw(url: string): Promise<RawClient> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  let received = ''
  let ended = false
  let wake = () => {}
  socket.setEncoding('latin1')
  socket.on('data', (text: string) => {
    received += text
    wake()
  })
  // A reset is an end too: what counts is what came before it.
  socket.on('error', () => {})
  socket.on('close', () => {
    ended = true
    wake()
  })
  return {
    socket,
    send: text => void socket.write(text),
    async answer() {
      for (;;) {
        const found = takeAnswer(received)
        if (found !== undefined) {
          received = received.slice(found.length)
          return found.answer
        }
        if (ended && received === '') return undefined
        if (ended) throw new Error(`the connection ended within an answer: ${received.slice(0, 200)}`)
        await new Promise<void>(resolve => {
          wake = resolve
        })
      }
    },
  }
}

function takeAnswer(received: string): { answer: RawAnswer; length: number } | undefined {
  const headEnd = received.indexOf('\r\n\r\n')
  if (headEnd === -1) return undefined
  const [statusLine = '', ...lines] = received.slice(0, headEnd).split('\r\n')
  const headers = new Map(
    lines.map(line => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
    }),
  )
  const length = headEnd + 4 + Number(headers.get('content-length') ?? 0)
  if (received.length < length) return undefined
  const body = Buffer.from(received.slice(headEnd + 4, length), 'latin1').toString()
  return { answer: { status: Number(statusLine.split(' ')[1]), headers, body }, length }
}

/** A request with a body, whole, on a connection that stays open. */
export function rawPost(token: string, body: string): string {
  const length = Buffer.byteLength(body)
  return `POST /plants HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n${body}`
}
