import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** One answer, as its bytes say. */
export interface Answer {
  readonly status: number
  /** Names in lower case; a field that was sent twice is here once, with both values separated by `, `. */
  readonly headers: ReadonlyMap<string, string>
  readonly body: Buffer
  /** The 1xx statuses that came before it. */
  readonly interim: readonly number[]
}

/** A connection on which bytes are sent as they are given, and answers read one after the other. */
export interface Wire {
  send(...bytes: readonly (string | Uint8Array)[]): void
  /**
   * The next answer.
   *
   * @param method of the request it belongs to: HEAD and CONNECT change where an answer ends
   * @throws Error when the connection ends, or `answerTimeoutMs` passes, before there is a whole one
   */
  answer(method?: string): Promise<Answer>
  /** Resolves to the status of the next interim (1xx) answer, such as 100. */
  interim(): Promise<number>
  /** Resolves once the server has closed the connection, to what it sent that no answer was read from. */
  closed(): Promise<Buffer>
  [Symbol.dispose](): void
}

/** Generous: a machine that tests everything at once is slow. */
const answerTimeoutMs = 20_000

/** @param url whose host and port to connect to */
export async function openWire(url: string): Promise<Wire> {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) })
  await once(socket, 'connect')
  const incoming = readFrom(socket)

  const interims: number[] = []
  const nextHead = async (method: string) => {
    const end = await incoming.until('\r\n\r\n')
    return readHead(incoming.take(end).toString('latin1'), method)
  }
  return {
    send(...bytes) {
      for (const part of bytes) socket.write(part)
    },
    async answer(method = 'GET') {
      for (;;) {
        const { status, headers, length } = await nextHead(method)
        if (status < 200) {
          interims.push(status)
          continue
        }
        if (length === 'unknown') {
          await incoming.ended()
          return { status, headers, body: incoming.take(incoming.size()), interim: interims.splice(0) }
        }
        await incoming.atLeast(length)
        return { status, headers, body: incoming.take(length), interim: interims.splice(0) }
      }
    },
    async interim() {
      const { status } = await nextHead('GET')
      if (status >= 200) throw new Error(`expected an interim answer, and got ${status}`)
      return status
    },
    async closed() {
      await incoming.ended()
      return incoming.take(incoming.size())
    },
    [Symbol.dispose]() {
      socket.destroy()
    },
  }
}

function readHead(head: string, method: string) {
  const [statusLine = '', ...lines] = head.slice(0, -4).split('\r\n')
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1])
  if (Number.isNaN(status)) throw new Error(`not the status line of an answer: ${JSON.stringify(statusLine)}`)
  const headers = new Map<string, string>()
  for (const line of lines) {
    const [, name, value = ''] = /^([!#$%&'*+.^_`|~\w-]+):[ \t]*(.*?)[ \t]*$/.exec(line) ?? []
    if (name === undefined) throw new Error(`not a header field: ${JSON.stringify(line)}`)
    const before = headers.get(name.toLowerCase())
    headers.set(name.toLowerCase(), before === undefined ? value : `${before}, ${value}`)
  }
  if (headers.has('transfer-encoding')) throw new Error('answers of known length are not sent in chunks')
  const given = headers.get('content-length')
  const length: number | 'unknown' =
    method === 'HEAD' || status < 200 || status === 204 || status === 304
      ? 0
      : given === undefined
        ? 'unknown'
        : Number(given)
  return { status, headers, length }
}

/** What has arrived and was not taken yet, and waits for more of it. */
function readFrom(socket: Socket) {
  let buffer: Buffer = Buffer.alloc(0)
  let ended = false
  let wake = () => {}
  const note = () => wake()
  socket.on('data', (chunk: Buffer) => {
    buffer = Buffer.concat([buffer, chunk])
    note()
  })
  // A reset after the answer has arrived takes nothing away from it; one before shows as a missing answer.
  socket.on('error', note)
  socket.on('close', () => {
    ended = true
    note()
  })
  socket.on('end', () => {
    ended = true
    note()
  })

  const waitFor = async <Found>(look: () => Found | undefined, what: string): Promise<Found> => {
    const deadline = Date.now() + answerTimeoutMs
    for (;;) {
      const found = look()
      if (found !== undefined) return found
      if (ended) throw new Error(`the connection ended before ${what}: ${JSON.stringify(`${buffer}`)}`)
      let timer: NodeJS.Timeout | undefined
      await new Promise<void>((resolve, reject) => {
        wake = resolve
        timer = setTimeout(
          () => reject(new Error(`waited too long for ${what}: ${JSON.stringify(`${buffer}`)}`)),
          Math.max(0, deadline - Date.now()),
        )
      }).finally(() => clearTimeout(timer))
    }
  }
  return {
    size: () => buffer.length,
    until: (mark: string) =>
      waitFor(() => {
        const at = buffer.indexOf(mark)
        return at === -1 ? undefined : at + mark.length
      }, 'the head of an answer'),
    atLeast: (length: number) =>
      waitFor(() => (buffer.length >= length ? true : undefined), `${length} bytes of body`),
    ended: () => waitFor(() => (ended ? true : undefined), 'the end of the connection'),
    take(length: number): Buffer {
      const taken = buffer.subarray(0, length)
      buffer = buffer.subarray(length)
      return taken
    },
  }
}
