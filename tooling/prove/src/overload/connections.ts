import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { figure } from '../part.ts'

/** Many connections of one load, with their answers counted by status. */
export class Connections implements Disposable {
  readonly #sockets: Socket[] = []
  readonly #counts = new Map<number, number>()
  readonly #port: number
  readonly #isRead: boolean
  #sent = 0

  constructor(url: string, { isRead }: { readonly isRead: boolean }) {
    this.#port = Number(new URL(url).port)
    this.#isRead = isRead
  }

  /** Opens connections. Resolves to those that were not refused. */
  async open(count: number): Promise<readonly Socket[]> {
    const opened: Socket[] = []
    // No more at a time than the listen queue holds.
    for (let made = 0; made < count; made += 200) {
      const length = Math.min(200, count - made)
      const batch = await Promise.all(Array.from({ length }, () => this.#open()))
      opened.push(...batch.filter(socket => !socket.destroyed))
    }
    return opened
  }

  get answers(): number {
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0)
  }

  countOf(status: number): number {
    return this.#counts.get(status) ?? 0
  }

  /** Sends a text. What the server does not read stays here, and must not pile up. */
  write(socket: Socket, text: string): boolean {
    if (!socket.writable || socket.writableLength > 2 ** 20) {
      return false
    }
    this.#sent += text.length
    return socket.write(text)
  }

  /** Sends a text again and again, as soon as the system takes it, until the end. */
  async flood(socket: Socket, text: string, endMs: number): Promise<void> {
    const closed = once(socket, 'close').catch(() => {})
    while (socket.writable && !socket.readableEnded && performance.now() < endMs) {
      if (!this.write(socket, text)) {
        await Promise.race([once(socket, 'drain').catch(() => {}), closed])
      }
    }
    socket.destroy()
  }

  /** @throws Error if an answer had another status */
  assertOnly(statuses: readonly number[]): void {
    for (const [status, count] of this.#counts) {
      if (!statuses.includes(status)) {
        throw new Error(`${count} answers of ${status}`)
      }
    }
  }

  toString(): string {
    const sorted = [...this.#counts].sort(([a], [b]) => a - b)
    const counts = sorted.map(([status, count]) => `${figure(count)} × ${status}`)
    const mebibytes = figure(Math.round(this.#sent / 2 ** 20))
    return `${figure(this.#sockets.length)} connections, ${mebibytes} MiB sent, ${counts.join(', ') || 'no answer'}`
  }

  [Symbol.dispose](): void {
    for (const socket of this.#sockets) {
      socket.destroy()
    }
  }

  async #open(): Promise<Socket> {
    const socket = connect(this.#port, '127.0.0.1').on('error', () => {})
    await once(socket, 'connect').catch(() => {})
    this.#sockets.push(socket)
    if (!this.#isRead) {
      return socket.pause()
    }
    let rest = ''
    socket.on('data', (chunk: Buffer) => {
      const text = rest + chunk.toString('latin1')
      let counted = 0
      for (const { 0: line, 1: status, index } of text.matchAll(/HTTP\/1\.1 (\d{3}) /g)) {
        this.#counts.set(Number(status), this.countOf(Number(status)) + 1)
        counted = index + line.length
      }
      // A status line may be cut in two.
      rest = text.slice(Math.max(counted, text.length - 'HTTP/1.1 200'.length))
    })
    return socket
  }
}
