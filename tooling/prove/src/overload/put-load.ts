import { readdirSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Server, until } from '@plant-store/harness'
import { Connections } from './connections.ts'
import type { Load } from './loads.ts'

export const openFiles = ({ pid }: Server): number =>
  readdirSync(`/proc/${pid}/fd`).length

const answersTimeoutMs = 60_000

/**
 * Puts a load on a server. Resolves to the outcome in words.
 *
 * @throws Error if an answer is wrong or missing
 */
export async function putLoad(
  server: Server,
  load: Load,
  nextId: () => bigint,
): Promise<string> {
  const filesBefore = openFiles(server)
  const held = () => openFiles(server) - filesBefore
  using connections = new Connections(server.url, { isRead: !load.unread })
  await connections.open(load.idle ?? 0)
  const endMs = performance.now() + load.seconds * 1_000
  const { connections: length } = load
  if (load.every === 'drain') {
    const flooding = Array.from({ length }, () => floodAgain(connections, load, endMs))
    await Promise.all(flooding)
  } else {
    await send(connections, load, nextId)
  }

  if (load.isCutOff) {
    const isCutOff = () => held() <= length / 10
    await until('all but a tenth to be cut off', isCutOff, answersTimeoutMs)
  }
  connections.assertOnly(load.statuses ?? [200, 400, 401, 408, 413, 431, 503])
  if (load.mostly !== undefined && connections.countOf(load.mostly) < length / 4) {
    throw new Error(`only ${connections}`)
  }
  return `${connections}`
}

/** Sends what a load says on its connections, and waits for the answers that it says. */
async function send(
  connections: Connections,
  { first = [], again = '', ...load }: Load,
  nextId: () => bigint,
): Promise<void> {
  const opened = await connections.open(load.connections)
  const textOf = (sent: typeof again) =>
    typeof sent === 'function' ? sent(nextId) : sent
  const sendOnAll = (sent: typeof again) => {
    for (const socket of opened) {
      connections.write(socket, textOf(sent))
    }
  }
  // The server accepts one in each turn of its loop, and must have all of them before the
  // first byte arrives.
  await sleep(load.unread ? 1_500 : 0)
  if (load.every === 'answer') {
    for (const socket of opened) {
      socket.on('data', () => connections.write(socket, textOf(again)))
    }
  }
  for (const text of first) {
    sendOnAll(text)
    await sleep(500)
  }
  const everyMs = Number(load.every)
  for (let sentMs = 0; sentMs < load.seconds * 1_000; sentMs += everyMs || 1_000) {
    await sleep(everyMs || 1_000)
    sendOnAll(everyMs ? again : '')
  }

  const openCount = () => opened.filter(({ destroyed }) => !destroyed).length
  const dueOfEach = load.answersOfEach ?? 0
  const areAnswered = () => connections.answers >= dueOfEach * openCount()
  await until('an answer to each', areAnswered, answersTimeoutMs).catch(error => {
    throw new Error(`${error.message}, with ${connections}`)
  })
  if (load.keepsOpen && openCount() < load.connections) {
    throw new Error(`only ${openCount()} of ${load.connections} connections are open`)
  }
}

/** Sends without end, on one new connection after another. */
async function floodAgain(
  connections: Connections,
  { first = [], again }: Load,
  endMs: number,
): Promise<void> {
  while (performance.now() < endMs) {
    const [socket] = await connections.open(1)
    if (socket !== undefined) {
      connections.write(socket, first.join(''))
      await connections.flood(socket, `${again}`, endMs)
    }
  }
}
