import type { Server } from 'node:http'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { connectionsOf } from './node-server.ts'

/**
 * How long a connection without a request stays open. A client that sends another
 * request in that time learns from the answer that it was the last. If the connection
 * were closed at once, the client could not know whether the request was received.
 */
const idleGraceMs = 500

/**
 * How long the stop waits for a client that seems to read nothing of its answer. The
 * kernel takes more bytes only once about 1 MiB of its buffer is free. So a client that
 * reads a long answer at 1 MiB a second, or slower, seems to read nothing, too.
 */
const stalledTimeoutMs = 1_000

const lookEveryMs = 50

/**
 * How long the stop still accepts connections that wait in the kernel. It is limited
 * because new ones might arrive forever.
 */
const acceptTimeoutMs = 500

/**
 * Has each answer that has not begun say that it is the last on its connection. Fastify
 * says so itself for requests that it gets from now on. Resolves after the grace, or once
 * no connection is open. A hook calls it before the server closes.
 */
export async function prepareStop(server: Server): Promise<void> {
  const closeAt = performance.now() + idleGraceMs
  // Answers whose header fields have left can no longer say that they are the last.
  server.keepAliveTimeout = 1
  server.keepAliveTimeoutBuffer = 0
  const open = connectionsOf(server)
  for (const { current } of open.values()) {
    if (current?.headersSent === false) {
      current.setHeader('connection', 'close')
    }
  }
  while (open.size > 0 && performance.now() < closeAt) {
    await sleep(lookEveryMs)
  }
  // Reads what arrived meanwhile, if the thread was busy until the grace was over.
  await nextTurn()
}

/**
 * Accepts pending connections, and then no more, because the kernel resets those that
 * wait when a server stops listening. Open connections stay. While clients open new ones
 * without a pause, some always wait: only a stop that they were told of resets none.
 */
export async function stopListening(server: Server): Promise<void> {
  // Node accepts one in each turn of its loop.
  let turnsWithout = 0
  const noteAccepted = () => {
    turnsWithout = 0
  }
  server.on('connection', noteAccepted)
  const giveUpAt = performance.now() + acceptTimeoutMs
  while (turnsWithout++ < 2 && performance.now() < giveUpAt) {
    await nextTurn()
  }
  server.off('connection', noteAccepted)
  // It would cut connections whose next request is on its way.
  const { closeIdleConnections } = server
  server.closeIdleConnections = () => {}
  server.close()
  server.closeIdleConnections = closeIdleConnections
}

/**
 * Closes a server: answers one more request on each connection, which is the one that
 * Fastify has or the next to arrive, and closes the connection after it. Requests that
 * wait behind that one are dropped. Cuts clients that seem to read nothing for a second,
 * and all others after the timeout.
 *
 * @returns the number of connections closed with a request unanswered
 */
export async function stopServer(
  app: FastifyInstance,
  timeoutMs: number,
): Promise<number> {
  const { server } = app
  const open = connectionsOf(server)
  let unanswered = 0
  let isGraceOver = false
  // Node closes as idle what is still sending the end of an answer.
  const { closeIdleConnections } = server
  server.closeIdleConnections = () => {
    isGraceOver = true
  }
  const looking = setInterval(() => {
    const sending = [...open.values()].filter(({ current }) => current?.writableEnded)
    for (const { socket } of sending) {
      if (socket.timeout !== stalledTimeoutMs) {
        socket.setTimeout(stalledTimeoutMs)
      }
    }
    if (isGraceOver && sending.length === 0) {
      closeIdleConnections.call(server)
    }
  }, lookEveryMs)
  const cutting = setTimeout(() => {
    for (const { socket, current } of open.values()) {
      if (current?.req.complete && !current.writableEnded) {
        unanswered++
      }
      socket.destroy()
    }
  }, timeoutMs)
  // The server may have stopped listening already, which Fastify allows.
  await app.close()
  while (open.size > 0) {
    await sleep(lookEveryMs)
  }
  clearInterval(looking)
  clearTimeout(cutting)
  return unanswered
}
