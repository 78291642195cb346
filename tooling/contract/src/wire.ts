import { EventEmitter, once } from 'node:events'
import { connect } from 'node:net'

/** The request, or `undefined` if the server could not parse it. */
export interface Asked {
  readonly method: string
  readonly target: string
}

/** An answer as its bytes say. */
export interface Answer {
  readonly status: number
  /** Names in lower case. Values of a repeated field are joined by `, `. */
  readonly headers: ReadonlyMap<string, string>
  readonly body: Buffer
  /** The interim (1xx) statuses before it. */
  readonly interim: readonly number[]
}

/** @throws Error with every way in which the answer departs from the description */
export type Check = (asked: Asked | undefined, answer: Answer) => void

/** A connection for raw bytes, with answers read one after another. */
export interface Wire extends Disposable {
  send(...bytes: readonly (string | Uint8Array)[]): void
  /**
   * Resolves to the next answer, checked.
   *
   * @param asked its request, whose method decides where the answer ends
   * @throws Error if the connection ends, or `answerTimeoutMs` passes, before the answer
   *   is complete
   */
  answer(asked: Asked | undefined): Promise<Answer>
  /** Resolves to the status of the next interim (1xx) answer, such as 100. */
  interim(): Promise<number>
  /**
   * Resolves once the server has closed the connection, to the bytes that no answer used.
   */
  closed(): Promise<Buffer>
}

/** Generous, for a busy machine. */
const answerTimeoutMs = 20_000

/** @param url its host and port are used */
export async function openWire(url: string, check: Check): Promise<Wire> {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) })
  await once(socket, 'connect')
  let received: Buffer = Buffer.alloc(0)
  let ended = false
  const changes = new EventEmitter()
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
    changes.emit('change')
  })
  // A reset after the answer changes nothing. One before shows as a missing answer.
  socket.on('error', () => {})
  for (const end of ['end', 'close']) {
    socket.on(end, () => {
      ended = true
      changes.emit('change')
    })
  }

  const waitFor = async (what: string, holds: () => boolean) => {
    const signal = AbortSignal.timeout(answerTimeoutMs)
    while (!holds()) {
      const reason = ended
        ? 'the connection ended before'
        : signal.aborted && 'waited too long for'
      if (reason) {
        throw new Error(`${reason} ${what}: ${JSON.stringify(`${received}`)}`)
      }
      await once(changes, 'change', { signal }).catch(() => {})
    }
  }
  const take = (length: number) => {
    const taken = received.subarray(0, length)
    received = received.subarray(length)
    return taken
  }
  const takeHead = async (method?: string) => {
    await waitFor('the head of an answer', () => received.includes('\r\n\r\n'))
    return readHead(take(received.indexOf('\r\n\r\n') + 4).toString('latin1'), method)
  }
  const takeBody = async (length: number) => {
    await waitFor(`${length} bytes of body`, () => received.length >= length)
    return take(length)
  }
  const takeAll = async () => {
    await waitFor('the end of the connection', () => ended)
    return take(received.length)
  }

  return {
    send(...bytes) {
      for (const part of bytes) {
        socket.write(part)
      }
    },
    async answer(asked) {
      const interim: number[] = []
      for (;;) {
        const { status, headers, length } = await takeHead(asked?.method)
        if (status < 200) {
          interim.push(status)
          continue
        }
        const body = await (length === undefined ? takeAll() : takeBody(length))
        const answer = { status, headers, body, interim }
        check(asked, answer)
        return answer
      }
    },
    async interim() {
      const { status } = await takeHead()
      if (status >= 200) {
        throw new Error(`expected an interim answer, and got ${status}`)
      }
      return status
    },
    closed: takeAll,
    [Symbol.dispose]: () => void socket.destroy(),
  }
}

/** Without a length, the body extends to the end of the connection. */
function readHead(head: string, method?: string) {
  const [statusLine = '', ...lines] = head.slice(0, -4).split('\r\n')
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1])
  if (Number.isNaN(status)) {
    throw new Error(`not the status line of an answer: ${JSON.stringify(statusLine)}`)
  }
  const headers = new Map<string, string>()
  for (const line of lines) {
    const [, name, value = ''] =
      /^([!#$%&'*+.^_`|~\w-]+):[ \t]*(.*?)[ \t]*$/.exec(line) ?? []
    if (name === undefined) {
      throw new Error(`not a header field: ${JSON.stringify(line)}`)
    }
    const before = headers.get(name.toLowerCase())
    headers.set(name.toLowerCase(), before === undefined ? value : `${before}, ${value}`)
  }
  if (headers.has('transfer-encoding')) {
    throw new Error('answers of known length are not sent in chunks')
  }
  const given = headers.get('content-length')
  const hasNoBody = method === 'HEAD' || status < 200 || status === 204 || status === 304
  const length = hasNoBody ? 0 : given === undefined ? undefined : Number(given)
  return { status, headers, length }
}
