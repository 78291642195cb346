import type { Server } from 'node:http'
import { Server as SocketServer } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Connection, connectionsOf } from './client-connection.ts'

/**
 * For how long a connection without a request stays open yet. A client that asks again at once reads in that answer
 * that it was the last one; cut at once, it could not know whether its request was ever seen.
 */
const idleGraceMs = 500

/** How often connections are looked for that have become idle. */
const reapEveryMs = 50

/** For a server that is closed without {@link drain}: every answer from now on is the last on its connection. */
export function announceStop(server: Server): void {
  connectionsOf(server).isDraining = true
  // For those whose answer has begun, and did not say so.
  server.keepAliveTimeout = 1
  server.keepAliveTimeoutBuffer = 0
}

/** Whether the server has begun to stop. */
export function isDraining(server: Server): boolean {
  return connectionsOf(server).isDraining
}

/** For connections to be accepted that the system has made already; under a flood of them there is always one more. */
const acceptTimeoutMs = 500

/**
 * Accepts what has connected so far, and nobody after that. What is asked from now on waits until the server drains: a
 * client that has its answer may connect anew.
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
 * once there are no connections any more. What is left after the time given is cut; a request that never arrived whole
 * waits as long, as it may still do so.
 *
 * @returns on how many connections a request had arrived whole and was cut before its answer was
 */
export async function drain(server: Server, timeoutMs: number): Promise<number> {
  if (server.listening) await stopListening(server)
  announceStop(server)
  const connections = connectionsOf(server)
  const { deferred = [], route } = connections
  connections.deferred = undefined
  const open = [...connections.open.values()]
  const closed = open.map(({ socket }) => new Promise(resolve => socket.once('close', resolve)))
  for (const { lastResponse } of open) {
    if (lastResponse !== undefined && !lastResponse.headersSent) lastResponse.shouldKeepAlive = false
  }
  for (const { request, response } of deferred) route(request, response)

  const reapFrom = performance.now() + idleGraceMs
  const reaping = setInterval(() => {
    if (performance.now() < reapFrom) return
    // To Node, one that never sent anything is about to.
    for (const { socket } of open) if (socket.bytesRead === 0) socket.destroy()
    // And one whose answer is still being taken is idle: it would be cut.
    if (!open.some(isUnanswered)) server.closeIdleConnections()
  }, reapEveryMs)
  let unanswered = 0
  const cutting = setTimeout(() => {
    unanswered = open.filter(isUnanswered).length
    for (const { socket } of open) socket.destroy()
  }, timeoutMs)

  await Promise.all(closed)
  clearInterval(reaping)
  clearTimeout(cutting)
  return unanswered
}

function isUnanswered({ lastResponse: last, socket }: Connection): boolean {
  return !socket.destroyed && last !== undefined && !last.writableFinished && last.req.complete
}
