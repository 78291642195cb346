import type { Server } from 'node:http'
import { Server as SocketServer } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Connection, connectionsOf } from './open-server.ts'

/**
 * For how long a connection without a request stays open. A client that sends another one at once reads in its answer
 * that it was the last. If the connection were cut at once, the client could not know whether the request was seen.
 */
const idleGraceMs = 500

const reapEveryMs = 50

/** Of the time to stop in, for batches to arrive. Past it they are answered, however much of them is still to come. */
const batchShare = 0.5

/** For the connections that the system has already made: under a flood of them there is always one more. */
const acceptTimeoutMs = 500

/** For a server that is closed without {@link drain}: every answer from now on is the last on its connection. */
export function announceStop(server: Server): void {
  connectionsOf(server).isDraining = true
  // For those whose answer has begun, and did not say so.
  server.keepAliveTimeout = 1
  server.keepAliveTimeoutBuffer = 0
}

/**
 * Accepts what has connected so far, and nothing after that. Requests that arrive from now on wait until the server
 * drains, as a client that has its answer may connect again.
 */
export async function stopListening(server: Server): Promise<void> {
  connectionsOf(server).deferred = []
  // The system resets what waits to be accepted, and Node accepts one in each turn of its loop.
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
  // Not the HTTP server's own close, which cuts idle connections at once and stops watching over slow requests.
  SocketServer.prototype.close.call(server)
}

/**
 * Stops listening, answers every request that has arrived, and closes each connection after its last answer. Resolves
 * once all connections are closed. After `timeoutMs` the rest are cut, also those whose request is still arriving.
 *
 * @returns the number of connections cut with a request unanswered that had arrived whole
 */
export async function drain(server: Server, timeoutMs: number): Promise<number> {
  if (server.listening) await stopListening(server)
  announceStop(server)
  const connections = connectionsOf(server)
  const { deferred = [] } = connections
  connections.deferred = undefined
  const open = [...connections.open.values()]
  const closed = open.map(({ socket }) => new Promise(resolve => socket.once('close', resolve)))
  for (const { lastResponse } of open) {
    if (lastResponse !== undefined && !lastResponse.headersSent) lastResponse.shouldKeepAlive = false
  }
  for (const route of deferred) route()

  const reapFrom = performance.now() + idleGraceMs
  const reaping = setInterval(() => {
    if (performance.now() < reapFrom) return
    // Node expects one that never sent anything to do so soon.
    for (const { socket } of open) if (socket.bytesRead === 0) socket.destroy()
    // Node would also cut one whose client is still reading its answer.
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
