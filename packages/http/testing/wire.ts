import { EventEmitter, once } from 'node:events'
import { connect, type Socket } from 'node:net'

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
  const inbox = new Inbox(socket)

  return {
    send(...bytes) {
      for (const part of bytes) {
        socket.write(part)
      }
    },
    async answer(asked) {
      const interim: number[] = []
      for (;;) {
        const { status, headers, length } = await inbox.takeHead(asked?.method)
        if (status < 200) {
          interim.push(status)
          continue
        }
        const body = await inbox.takeBody(length)
        const answer = { status, headers, body, interim }
        check(asked, answer)
        return answer
      }
    },
    async interim() {
      const { status } = await inbox.takeHead()
      if (status >= 200) {
        throw new Error(`expected an interim answer, and got ${status}`)
      }
      return status
    },
    closed: () => inbox.takeBody(undefined),
    [Symbol.dispose]: () => void socket.destroy(),
  }
}

/** The bytes that have arrived on a connection and were not taken yet. */
class Inbox {
  #chunks: Buffer[] = []
  /** Whether nothing more will arrive. */
  #hasEnded = false
  readonly #changes = new EventEmitter()

  constructor(socket: Socket) {
    socket.on('data', (bytes: Buffer) => {
      this.#chunks.push(bytes)
      this.#changes.emit('change')
    })
    // A reset after the answer changes nothing. One before shows as a missing answer.
    socket.on('error', () => {})
    const onEnd = () => {
      this.#hasEnded = true
      this.#changes.emit('change')
    }
    socket.on('end', onEnd).on('close', onEnd)
  }

  async takeHead(method?: string): Promise<Head> {
    const end = '\r\n\r\n'
    await this.#waitFor('the head of an answer', () => this.#received.includes(end))
    const head = this.#take(this.#received.indexOf(end) + end.length)
    return readHead(head.toString('latin1'), method)
  }

  /** Takes this number of bytes, or without one all until the connection ends. */
  async takeBody(length: number | undefined): Promise<Buffer> {
    if (length === undefined) {
      await this.#waitFor('the end of the connection', () => this.#hasEnded)
      return this.#take(this.#received.length)
    }
    const hasAll = () => this.#received.length >= length
    await this.#waitFor(`${length} bytes of body`, hasAll)
    return this.#take(length)
  }

  /** Joined only when somebody looks, because that copies all. */
  get #received(): Buffer {
    const received = Buffer.concat(this.#chunks)
    this.#chunks = [received]
    return received
  }

  #take(length: number): Buffer {
    const received = this.#received
    this.#chunks = [received.subarray(length)]
    return received.subarray(0, length)
  }

  async #waitFor(what: string, holds: () => boolean): Promise<void> {
    const signal = AbortSignal.timeout(answerTimeoutMs)
    while (!holds()) {
      if (this.#hasEnded) {
        throw new Error(`the connection ended before ${what}: ${this.#shown()}`)
      }
      if (signal.aborted) {
        throw new Error(`waited too long for ${what}: ${this.#shown()}`)
      }
      await once(this.#changes, 'change', { signal }).catch(() => {})
    }
  }

  #shown(): string {
    return JSON.stringify(`${this.#received}`)
  }
}

interface Head {
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  /** The length of the body. Without one, it extends to the end of the connection. */
  readonly length: number | undefined
}

function readHead(head: string, method?: string): Head {
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
  const hasNoBody = method === 'HEAD' || status < 200 || status === 204 || status === 304
  if (hasNoBody) {
    return { status, headers, length: 0 }
  }
  const length = headers.get('content-length')
  return { status, headers, length: length === undefined ? undefined : Number(length) }
}
