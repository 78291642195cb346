import type { Server } from 'node:http'
import { Server as SocketServer } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Connection, connectionsOf } from './node-server.ts'

/**
 * How long a connection without a request stays open. A client that sends another request in that time learns from the
 * answer that it was the last. If the connection were closed at once, the client could not know whether the request was
 * received.
 */
const idleGraceMs = 500

const reapEveryMs = 50

/** The share of the timeout that batches have to arrive. After it they are answered, complete or not. */
const batchShare = 0.5

/** For connections that the kernel has already accepted. A flood would never end. */
const acceptTimeoutMs = 500

/** Makes every answer from now on the last on its connection, for a server that is closed without {@link drain}. */
export function announceStop(server: Server): void {
  connectionsOf(server).isDraining = true
  // For answers whose headers have left without `Connection: close`.
  server.keepAliveTimeout = 1
}

/**
 * Accepts pending connections, and then no more. Requests that arrive from now on wait until the server drains, because
 * a client with an answer may already connect again.
 */
export async function stopListening(server: Server): Promise<void> {
  connectionsOf(server).untilDrain = []
  // The kernel resets connections that are not accepted, and Node accepts one in each turn of its loop.
  let turnsWithout = 0
  const noteAccepted = () => {
    turnsWithout = 0
  }
  server.on('connection', noteAccepted)
  const giveUpAt = performance.now() + acceptTimeoutMs
  while (turnsWithout < 2 && performance.now() < giveUpAt) {
    turnsWithout++
    await nextTurn()
  }
  server.off('connection', noteAccepted)
  // The HTTP server's own close would cut idle connections at once and stop the timeouts of slow requests.
  SocketServer.prototype.close.call(server)
}

/**
 * Stops listening, answers every request that has arrived, and closes each connection after its last answer. Resolves
 * once all connections are closed. After `timeoutMs` it cuts the rest, including those whose request is still arriving.
 *
 * @returns the number of connections closed with a request unanswered
 */
export async function drain(server: Server, timeoutMs: number): Promise<number> {
  if (server.listening) await stopListening(server)
  announceStop(server)
  const connections = connectionsOf(server)
  const { untilDrain = [] } = connections
  connections.untilDrain = undefined
  const open = [...connections.open.values()]
  const closed = open.map(({ socket }) => new Promise(resolve => socket.once('close', resolve)))
  for (const { lastResponse } of open) {
    if (lastResponse !== undefined && !lastResponse.headersSent) lastResponse.shouldKeepAlive = false
  }
  for (const route of untilDrain) route()

  const reapFrom = performance.now() + idleGraceMs
  const reaping = setInterval(() => {
    if (performance.now() < reapFrom) return
    // Node waits for a connection that never sent anything.
    for (const { socket } of open) if (socket.bytesRead === 0) socket.destroy()
    // Node would also cut a client that is still reading its answer.
    if (!open.some(isUnanswered)) server.closeIdleConnections()
  }, reapEveryMs)
  const ending = setTimeout(() => connections.ending.abort(), timeoutMs * batchShare)
  let unanswered = 0
  const cutting = setTimeout(() => {
    unanswered = open.filter(isUnanswered).length
    for (const { socket } of open) socket.destroy()
  }, timeoutMs)

  await Promise.all(closed)
  clearInterval(reaping)
  clearTimeout(ending)
  clearTimeout(cutting)
  return unanswered
}

function isUnanswered({ lastResponse: last, socket }: Connection): boolean {
  return !socket.destroyed && last !== undefined && !last.writableFinished && last.req.complete
}
