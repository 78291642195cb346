import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { figure } from '../part.ts'
import { Connections } from './connections.ts'
import { type Attack, authorized } from './target.ts'

/** Attacks with bytes that nobody reads yet, and with what the server keeps of them. */

/** Writes one text after another on many connections, and reads no answers. */
export function unread(count: number, ...texts: readonly string[]): Attack {
  return async ({ program }) => {
    using connections = (await Connections.open(program.url, count)).pause()
    // The server accepts one in each turn of its loop, and must have all of them before
    // the first byte arrives.
    await sleep(1_500)
    for (const text of texts) {
      connections.write(text)
      await sleep(500)
    }
    await sleep(3_500)
    return `${figure(connections.sockets.length)} connections`
  }
}

/**
 * Writes a text on many connections, and counts the answers, which may only have these
 * statuses.
 */
export function answered(
  count: number,
  text: string,
  ...statuses: readonly number[]
): Attack {
  return async ({ program }) => {
    using connections = await Connections.open(program.url, count)
    connections.write(text)
    await sleep(6_000)
    connections.assertOnly(...statuses)
    return `${figure(connections.sockets.length)} connections, ${connections}`
  }
}

export const batchesOf = (count: number, body: string): Attack =>
  answered(count, batch + body, 200, 408, 413, 503)

export function chunks(text: string, count = 1): string {
  return `${text.length.toString(16)}\r\n${text}\r\n`.repeat(count)
}

/** It needs no token. */
export const post =
  'POST /plants HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n'
const batch = `POST /plants/batch HTTP/1.1\r\n${authorized}content-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n`
export const longPage = 'GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nhost: h\r\n\r\n'
/** A request with as many fields as fit. */
const fields = Array.from({ length: 700 }, (_, n) => `x-${n}: ${n}yyyyyyyy\r\n`)
export const manyFields = `GET /healthz HTTP/1.1\r\nhost: h\r\n${fields.join('')}\r\n`

const long = 'x'.repeat(400_000)
/** Each repeats a member, which the message of its fault quotes. */
export const longRefusedLines = chunks(`{"${long}":1,"${long}":2}\n`, 100)

/**
 * Unfinished lines of one token hold memory, and must not refuse those who read little.
 */
export const unfinishedLines: Attack = async ({ program }) => {
  using connections = await Connections.open(program.url, 40)
  await program.client.ask('PUT', '/plants/1', { body: '{"name":"n"}' })
  connections.write(batch + chunks(' '.repeat(2 ** 20 - 10)))
  await sleep(1_000)
  for (let n = 0; n < 200; n++) {
    const { status } = await program.client.ask(
      'GET',
      n % 2 === 0 ? '/plants/1' : '/plants?limit=10',
    )
    if (status !== 200) {
      throw new Error(`a reader got ${status}`)
    }
  }
  return `200 answers to readers, ${connections}`
}

/**
 * Sends chunks without a token, as long as the server takes them, and begins again.
 * Others may be idle beside them.
 */
export const endlessBodies =
  (piece: string, idle = 0): Attack =>
  async ({ program }) => {
    using _idle = await Connections.open(program.url, idle)
    const endAt = performance.now() + 6_000
    let sent = 0
    const fill = async (socket: Socket) => {
      const closed = once(socket, 'close').catch(() => {})
      socket.write(post)
      while (socket.writable && performance.now() < endAt) {
        sent += piece.length
        if (!socket.write(piece)) {
          await Promise.race([once(socket, 'drain').catch(() => {}), closed])
        }
      }
    }
    const flood = async () => {
      while (performance.now() < endAt) {
        using connections = await Connections.open(program.url, 1)
        for (const socket of connections.sockets) {
          await fill(socket)
        }
      }
    }
    await Promise.all(Array.from({ length: 50 }, flood))
    return `${figure(Math.round(sent / 2 ** 20))} MiB sent`
  }
