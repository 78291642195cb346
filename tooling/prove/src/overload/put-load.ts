import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '@plant-store/harness'
import { figure } from '../part.ts'
import type { Load, Sent } from './loads.ts'

/**
 * Puts a load on a server. Resolves to the outcome in words.
 *
 * @throws Error if an answer is wrong or missing
 */
export async function putLoad(url: string, load: Load): Promise<string> {
  using connections = new Connections(url, load)
  await (load.flood ? connections.flood(load.flood) : connections.send())

  const byStatus = Object.entries(Object.groupBy(connections.answers, status => status))
  const counts = byStatus.map(
    ([status, all]) => `${figure(all?.length ?? 0)} × ${status}`,
  )
  const opened = `${figure(connections.sockets.length)} connections`
  const outcome = `${opened}, ${counts.join(', ') || 'no answer'}`
  const { statuses = [200, 400, 401, 408, 413, 431, 503] } = load
  const areRight = connections.answers.every(status => statuses.includes(status))
  if (!areRight || connections.lackAnswers()) {
    throw new Error(`wrong or missing answers: ${outcome}`)
  }
  return outcome
}

const textOf = (sent: Sent = '') => (typeof sent === 'function' ? sent() : sent)

/** The connections of a load. */
class Connections implements Disposable {
  readonly sockets: Socket[] = []
  /** The statuses of the answers. */
  readonly answers: number[] = []
  readonly #url: URL
  readonly #load: Load

  constructor(url: string, load: Load) {
    this.#url = new URL(url)
    this.#load = load
  }

  /** Where requests may be refused, a connection that was closed is due none. */
  lackAnswers(): boolean {
    const { answers = 0, flood, statuses } = this.#load
    const mayClose = !flood && statuses?.includes(503)
    const open = this.sockets.filter(({ destroyed }) => !destroyed)
    const share = mayClose ? open.length / this.sockets.length : 1
    return this.answers.length < Math.max(Math.min(answers, 1), answers * share)
  }

  /** Sends what the load says on its connections, and waits for the answers. */
  async send(): Promise<void> {
    const { connections, first, second, again, seconds = 4, unread } = this.#load
    const { everyMs = seconds * 1_000 } = this.#load
    while (this.sockets.length < connections) {
      await this.#open()
    }
    // The server accepts one in each turn of its loop, and must have all of them before
    // the first byte arrives.
    await sleep(unread ? 1_500 : 0)
    this.#sendOnAll(first)
    await sleep(500)
    this.#sendOnAll(second)
    await sleep(500)
    for (let sentMs = 0; sentMs < seconds * 1_000; sentMs += everyMs) {
      await sleep(everyMs)
      this.#sendOnAll(again)
    }
    // Waits until all that are due have come, on any machine: as long as some come.
    let before = -1
    while (this.lackAnswers() && this.answers.length > before) {
      before = this.answers.length
      await until('answers', () => !this.lackAnswers(), 20_000).catch(() => {})
    }
  }

  /** Sends without end, on one new connection after another for each of the load's. */
  async flood(text: string): Promise<void> {
    const { connections, first, seconds = 4 } = this.#load
    const endMs = performance.now() + seconds * 1_000
    const isOver = () => performance.now() >= endMs
    const texts = function* () {
      yield textOf(first)
      while (!isOver()) {
        yield text
      }
    }
    const floodOne = async () => {
      while (!isOver()) {
        const socket = await this.#open()
        await pipeline(Readable.from(texts()), socket, { end: false }).catch(() => {})
        socket.destroy()
      }
    }
    await Promise.all(Array.from({ length: connections }, floodOne))
  }

  [Symbol.dispose](): void {
    for (const socket of this.sockets) {
      socket.destroy()
    }
  }

  #sendOnAll(sent: Sent | undefined): void {
    for (const socket of this.sockets) {
      // Bytes that the server does not read stay here, and must not pile up.
      if (socket.writable && socket.writableLength < 2 ** 20) {
        socket.write(textOf(sent))
      }
    }
  }

  async #open(): Promise<Socket> {
    const { hostname, port } = this.#url
    const socket = connect(Number(port), hostname).on('error', () => {})
    await once(socket, 'connect').catch(() => {})
    this.sockets.push(socket)
    if (this.#load.unread) {
      return socket.pause()
    }
    let rest = ''
    return socket.on('data', (chunk: Buffer) => {
      const text = rest + chunk.toString('latin1')
      for (const [, status] of text.matchAll(/HTTP\/1\.1 (\d{3}) /g)) {
        this.answers.push(Number(status))
      }
      // A status line may be cut in two.
      rest = text.slice(-'HTTP/1.1 200'.length)
    })
  }
}
