import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { figure } from '../part.ts'

/**
 * Many connections of one attack, with their answers counted by status. Disposal closes
 * them.
 */
export class Connections implements Disposable {
  readonly sockets: Socket[] = []
  readonly counts = new Map<number, number>()

  /** Opens connections at once, without those that are refused. */
  static async open(url: string, count: number): Promise<Connections> {
    const { hostname, port } = new URL(url)
    const opened = new Connections()
    // No more at a time than the listen queue holds.
    for (let made = 0; made < count; made += 200) {
      const batch = Array.from({ length: Math.min(200, count - made) }, async () => {
        const socket = connect({ host: hostname, port: Number(port) }).on(
          'error',
          () => {},
        )
        await once(socket, 'connect').catch(() => {})
        if (!socket.destroyed) {
          opened.#add(socket)
        }
      })
      await Promise.all(batch)
    }
    return opened
  }

  get answers(): number {
    let sum = 0
    for (const count of this.counts.values()) {
      sum += count
    }
    return sum
  }

  write(bytes: string): void {
    for (const socket of this.sockets) {
      socket.write(bytes)
    }
  }

  /** Sends a request on each connection, and another after every answer. */
  keepAsking(request: () => string): void {
    for (const socket of this.sockets) {
      socket.on('data', () => socket.write(request()))
      socket.write(request())
    }
  }

  /** Reads no answers. */
  pause(): this {
    for (const socket of this.sockets) {
      socket.pause()
    }
    return this
  }

  /** @throws Error if an answer had another status */
  assertOnly(...statuses: readonly number[]): void {
    for (const [status, count] of this.counts) {
      if (!statuses.includes(status)) {
        throw new Error(`${count} answers of ${status}`)
      }
    }
  }

  toString(): string {
    const sorted = [...this.counts].sort(([a], [b]) => a - b)
    return (
      sorted.map(([status, count]) => `${figure(count)} × ${status}`).join(', ') ||
      'no answer'
    )
  }

  [Symbol.dispose](): void {
    for (const socket of this.sockets) {
      socket.destroy()
    }
  }

  #add(socket: Socket): void {
    this.sockets.push(socket)
    let rest = ''
    socket.on('data', (chunk: Buffer) => {
      const text = rest + chunk.toString('latin1')
      let counted = 0
      for (const { 0: line, 1: status, index } of text.matchAll(/HTTP\/1\.1 (\d{3}) /g)) {
        const before = this.counts.get(Number(status)) ?? 0
        this.counts.set(Number(status), before + 1)
        counted = index + line.length
      }
      // A status line may be cut in two.
      rest = text.slice(Math.max(counted, text.length - 'HTTP/1.1 200'.length))
    })
  }
}
