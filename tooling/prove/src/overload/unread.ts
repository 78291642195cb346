import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { figure } from '../part.ts'
import { Connections } from './connections.ts'
import { type Attack, authorized, healthRequest } from './target.ts'

/** Attacks with bytes that nobody reads yet, and with what the server keeps of them. */

export function chunks(text: string, count = 1): string {
  return `${text.length.toString(16)}\r\n${text}\r\n`.repeat(count)
}

const post = 'POST /plants HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n'
const batch = `POST /plants/batch HTTP/1.1\r\n${authorized}content-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n`
const longPage = 'GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nhost: h\r\n\r\n'

const long = 'x'.repeat(400_000)
/** Each repeats a member, which the message of its fault quotes. */
export const longRefusedLines = chunks(`{"${long}":1,"${long}":2}\n`, 100)

/** The body waits behind answers that the client does not read. It needs no token. */
function bodiesBehindUnread(count: number, body: string): Attack {
  return async ({ program }) => {
    using connections = (await Connections.open(program.url, count)).pause()
    connections.write(longPage.repeat(6))
    await sleep(500)
    connections.write(post + body)
    await sleep(4_000)
    return `${figure(connections.sockets.length)} connections`
  }
}

export const tinyChunksBehindUnread = bodiesBehindUnread(100, chunks('x', 30_000))
export const bodiesOnManyConnections = bodiesBehindUnread(6_000, chunks('x'.repeat(1_000), 60))

export function batchesOf(count: number, body: string): Attack {
  return async ({ program }) => {
    using connections = await Connections.open(program.url, count)
    connections.write(batch + body)
    await sleep(4_000)
    connections.assertOnly(200, 408, 413, 503)
    return `${figure(connections.sockets.length)} batches, ${connections}`
  }
}

/** Opens idle connections whose last request had as many fields as fit. */
export const idleAfterManyFields: Attack = async ({ program }) => {
  using connections = await Connections.open(program.url, 9_900)
  const fields = Array.from({ length: 700 }, (_, n) => `x-${n}: ${n}yyyyyyyy\r\n`).join('')
  connections.write(`GET /healthz HTTP/1.1\r\nhost: h\r\n${fields}\r\n`)
  await sleep(6_000)
  // Opening all of them takes longer than a header section may.
  connections.assertOnly(200, 408, 503)
  return `${connections}`
}

/** Unfinished lines of one token hold memory, and must not refuse those who read little. */
export const unfinishedLines: Attack = async ({ program }) => {
  using connections = await Connections.open(program.url, 40)
  await program.client.ask('PUT', '/plants/1', { body: '{"name":"n"}' })
  connections.write(batch + chunks(' '.repeat(2 ** 20 - 10)))
  await sleep(1_000)
  for (let n = 0; n < 200; n++) {
    const { status } = await program.client.ask('GET', n % 2 === 0 ? '/plants/1' : '/plants?limit=10')
    if (status !== 200) throw new Error(`a reader got ${status}`)
  }
  return `200 answers to readers, ${connections}`
}

/** Sends chunks without a token, as long as the server takes them, and begins again. Others may be idle beside them. */
export const endlessBodies =
  (piece: string, idle = 0): Attack =>
  async ({ program }) => {
    using _idle = await Connections.open(program.url, idle)
    const endAt = performance.now() + 6_000
    let sent = 0
    const flood = async () => {
      while (performance.now() < endAt) {
        using connections = await Connections.open(program.url, 1)
        for (const socket of connections.sockets) {
          const closed = once(socket, 'close').catch(() => {})
          socket.write(post)
          while (socket.writable && performance.now() < endAt) {
            sent += piece.length
            if (!socket.write(piece)) await Promise.race([once(socket, 'drain').catch(() => {}), closed])
          }
        }
      }
    }
    await Promise.all(Array.from({ length: 50 }, flood))
    return `${figure(Math.round(sent / 2 ** 20))} MiB sent`
  }

export const tinyRequests: Attack = async ({ program }) => {
  using connections = (await Connections.open(program.url, 800)).pause()
  // The server accepts one in each turn of its loop, and must have all of them before the first byte arrives.
  await sleep(1_500)
  connections.write(healthRequest.repeat(5_000))
  await sleep(4_000)
  return `${figure(connections.sockets.length)} connections`
}

export const pipelinedDescriptions: Attack = async ({ program }) => {
  using connections = await Connections.open(program.url, 50)
  connections.write('GET /openapi.json HTTP/1.1\r\nhost: h\r\n\r\n'.repeat(5_000))
  await sleep(6_000)
  connections.assertOnly(200)
  return `${connections}`
}
