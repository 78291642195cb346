import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Server, until } from '@plant-store/harness'
import { figure } from '../part.ts'
import type { Load, Sent } from './loads.ts'

export const openFiles = ({ pid }: Server): number =>
  readdirSync(`/proc/${pid}/fd`).length

/**
 * Puts a load on a server. Resolves to the outcome in words.
 *
 * @throws Error if an answer is wrong or missing
 */
export async function putLoad(server: Server, load: Load): Promise<string> {
  using connections = new Connections(server.url, load)
  if (load.every === 'drain') {
    const endMs = performance.now() + load.seconds * 1_000
    const { connections: length } = load
    await Promise.all(Array.from({ length }, () => connections.flood(endMs)))
  } else {
    await connections.send()
  }

  const statuses = load.statuses ?? [200, 400, 401, 408, 413, 431, 503]
  const wrong = [...connections.counts.keys()].find(status => !statuses.includes(status))
  if (wrong !== undefined || connections.lackAnswers()) {
    throw new Error(`wrong or missing answers: ${connections}`)
  }
  return `${connections}`
}

const textOf = (sent: Sent) => (typeof sent === 'function' ? sent() : sent)

/** The connections of a load, with their answers counted by status. */
class Connections implements Disposable {
  readonly counts = new Map<number, number>()
  readonly #sockets: Socket[] = []
  readonly #port: number
  readonly #load: Load

  constructor(url: string, load: Load) {
    this.#port = Number(new URL(url).port)
    this.#load = load
  }

  get answers(): number {
    return [...this.counts.values()].reduce((sum, count) => sum + count, 0)
  }

  /** Where requests may be refused, a connection that was closed is due none. */
  lackAnswers(): boolean {
    const { answers = 0, every, statuses } = this.#load
    const mayClose = every !== 'drain' && statuses?.includes(503)
    const open = this.#sockets.filter(({ destroyed }) => !destroyed)
    const share = mayClose ? open.length / this.#sockets.length : 1
    return this.answers < Math.max(Math.min(answers, 1), answers * share)
  }

  /** Sends what the load says on its connections, and waits for the answers. */
  async send(): Promise<void> {
    const { first = [], again = '', every, seconds, unread } = this.#load
    // No more at a time than the listen queue holds.
    for (let made = 0; made < this.#load.connections; made += 200) {
      const length = Math.min(200, this.#load.connections - made)
      await Promise.all(Array.from({ length }, () => this.#open()))
    }
    const opened = this.#sockets
    const sendOnAll = (sent: Sent) => {
      // Bytes that the server does not read stay here, and must not pile up.
      const ready = opened.filter(each => each.writable && each.writableLength < 2 ** 20)
      for (const socket of ready) {
        socket.write(textOf(sent))
      }
    }
    // The server accepts one in each turn of its loop, and must have all of them before
    // the first byte arrives.
    await sleep(unread ? 1_500 : 0)
    for (const text of first) {
      sendOnAll(text)
      await sleep(500)
    }
    const everyMs = Number(every ?? seconds * 1_000)
    for (let sentMs = 0; sentMs < seconds * 1_000; sentMs += everyMs) {
      await sleep(everyMs)
      sendOnAll(again)
    }
    await this.#awaitAnswers()
  }

  /** Sends without end, on one new connection after another. */
  async flood(endMs: number): Promise<void> {
    const { first = [], again = '' } = this.#load
    const isOver = () => performance.now() >= endMs
    while (!isOver()) {
      const socket = await this.#open()
      const closed = once(socket, 'close').catch(() => {})
      socket.write(`${first.map(textOf).join('')}`)
      while (socket.writable && !socket.readableEnded && !isOver()) {
        if (!socket.write(textOf(again))) {
          await Promise.race([once(socket, 'drain').catch(() => {}), closed])
        }
      }
      socket.destroy()
    }
  }

  toString(): string {
    const counts = [...this.counts].map(
      ([status, count]) => `${figure(count)} × ${status}`,
    )
    return `${figure(this.#sockets.length)} connections, ${counts.join(', ') || 'no answer'}`
  }

  [Symbol.dispose](): void {
    for (const socket of this.#sockets) {
      socket.destroy()
    }
  }

  /** Waits until all that are due have come, on any machine: as long as some come. */
  async #awaitAnswers(): Promise<void> {
    for (let before = -1; this.lackAnswers() && this.answers > before; ) {
      before = this.answers
      await until('answers', () => !this.lackAnswers(), 20_000).catch(() => {})
    }
  }

  async #open(): Promise<Socket> {
    const socket = connect(this.#port, '127.0.0.1').on('error', () => {})
    await once(socket, 'connect').catch(() => {})
    this.#sockets.push(socket)
    if (this.#load.unread) {
      return socket.pause()
    }
    let rest = ''
    return socket.on('data', (chunk: Buffer) => {
      const text = rest + chunk.toString('latin1')
      const [, ...answers] = text.split(/HTTP\/1\.1 (?=\d{3} )/)
      for (const answer of answers) {
        const status = Number(answer.slice(0, 3))
        this.counts.set(status, (this.counts.get(status) ?? 0) + 1)
      }
      // A status line may be cut in two.
      rest = (answers.at(-1) ?? text).slice(-'HTTP/1.1 200'.length)
    })
  }
}
