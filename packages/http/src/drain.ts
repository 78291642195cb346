import type { Server, ServerResponse } from 'node:http'
import { type Socket, Server as SocketServer } from 'node:net'

/**
 * For how long a connection without a request stays open yet. A client that asks again at once reads in that answer
 * that it was the last one; cut at once, it could not know whether its request was ever seen.
 */
const idleGraceMs = 500

/** How often connections are looked for that have become idle. */
const reapEveryMs = 50

/** The last response on each connection: answers leave in the order of their requests, so it tells of all of them. */
const lastResponses = new WeakMap<Socket, ServerResponse>()
const connections = new WeakMap<Server, Set<Socket>>()
const draining = new WeakSet<Server>()

/** Call before the server listens. */
export function watchConnections(server: Server): void {
  const open = new Set<Socket>()
  connections.set(server, open)
  server.on('connection', (socket: Socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })
}

/** The answer to what came last on a connection; `undefined` when nothing has come yet. */
export function lastResponse(socket: Socket): ServerResponse | undefined {
  return lastResponses.get(socket)
}

/** Call with every response before anything is done about it. */
export function noteResponse(server: Server, socket: Socket, response: ServerResponse): void {
  if (draining.has(server)) {
    // Only what comes last on a connection may say so: nothing after it would be answered.
    const before = lastResponses.get(socket)
    if (before !== undefined && !before.headersSent) before.shouldKeepAlive = true
    response.shouldKeepAlive = false
  }
  lastResponses.set(socket, response)
}

/** For a server that is closed without {@link drain}: every answer from now on is the last on its connection. */
export function announceStop(server: Server): void {
  draining.add(server)
  // For those whose answer has begun, and did not say so.
  server.keepAliveTimeout = 1
  server.keepAliveTimeoutBuffer = 0
}

/** Whether the server has begun to stop. */
export function isDraining(server: Server): boolean {
  return draining.has(server)
}

/**
 * Stops listening, answers every request that has arrived, and closes each connection after its last answer. Resolves
 * once there are no connections any more. What is left after the time given is cut; a request that never arrived whole
 * waits as long, as it may still do so.
 *
 * @returns on how many connections a request had arrived whole and was cut before its answer was
 */
export async function drain(server: Server, timeoutMs: number): Promise<number> {
  announceStop(server)
  const open = connections.get(server) ?? new Set()
  // Not the HTTP server's own close, which cuts idle connections at once and stops watching over slow requests.
  const closed = new Promise(resolve => SocketServer.prototype.close.call(server, resolve))
  for (const socket of open) {
    const response = lastResponse(socket)
    if (response !== undefined && !response.headersSent) response.shouldKeepAlive = false
  }

  const reapFrom = performance.now() + idleGraceMs
  const reaping = setInterval(() => {
    if (performance.now() < reapFrom) return
    // To Node, one that never sent anything is about to.
    for (const socket of open) if (socket.bytesRead === 0) socket.destroy()
    // And one whose answer is still being taken is idle: it would be cut.
    if (![...open].some(isUnanswered)) server.closeIdleConnections()
  }, reapEveryMs)
  let unanswered = 0
  const cutting = setTimeout(() => {
    unanswered = [...open].filter(isUnanswered).length
    for (const socket of open) socket.destroy()
  }, timeoutMs)

  await closed
  clearInterval(reaping)
  clearTimeout(cutting)
  return unanswered
}

function isUnanswered(socket: Socket): boolean {
  const response = lastResponse(socket)
  return response !== undefined && !response.writableFinished && response.req.complete
}
