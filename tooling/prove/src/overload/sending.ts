import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '@plant-store/harness'
import { toJson } from '@plant-store/http/testing'
import { figure } from '../part.ts'
import { Connections } from './connections.ts'
import {
  type Attack,
  authorized,
  healthRequest,
  openFiles,
  type Target,
} from './target.ts'

/** Attacks that send too much, too fast, too slowly or without end. */

export async function tenTimesTheRate(target: Target): Promise<string> {
  const { program, scale } = target
  const perSecond = await sustainableRate(target)
  const seconds = Math.max(1, 4 * scale)
  using connections = await Connections.open(program.url, 400)
  const { sockets } = connections
  let offered = 0
  const beganAt = performance.now()
  for (;;) {
    const elapsed = (performance.now() - beganAt) / 1_000
    if (elapsed > seconds) {
      break
    }
    const due = elapsed * perSecond * 10
    const each = Math.ceil(Math.floor(due - offered) / sockets.length)
    for (const socket of sockets) {
      if (socket.destroyed || offered >= due) {
        continue
      }
      const requests = createRequests(each, target)
      offered += each
      // Data that the server does not read stays here, and must not pile up.
      if (socket.writableLength < 2 ** 20) {
        socket.write(requests)
      }
    }
    await sleep(5)
  }
  await sleep(1_000)
  connections.assertOnly(200, 408, 503)
  return `${figure(Math.round(perSecond))} a second kept up, ${figure(Math.round(offered / seconds))} a second offered, ${connections}`
}

/** Returns how many creates a second are answered if each client waits for its answer. */
async function sustainableRate({ program, nextId }: Target): Promise<number> {
  using connections = await Connections.open(program.url, 32)
  connections.keepAsking(() => createRequest(nextId()))
  // A program is slower right after its start.
  await sleep(1_500)
  const created = () => connections.counts.get(200) ?? 0
  const before = created()
  const measureMs = 1_500
  await sleep(measureMs)
  return ((created() - before) / measureMs) * 1_000
}

/**
 * Opens idle connections that are answered once. All must still be open, and be answered,
 * after the attack.
 */
export async function idleConnections({
  program,
  fallShort,
  healthyAnswers,
}: Target): Promise<string> {
  // Each thread accepts its share, and the kernel spreads connections unevenly.
  const meant = 800
  // More files than a process has open besides its connections.
  const filesBesides = 300
  // Each is an open file in this process, and one in the program.
  const files = Math.min(openFilesMax('self'), openFilesMax(program.pid))
  const wanted = Math.min(meant, files - filesBesides)
  if (wanted < meant) {
    fallShort(
      `only ${figure(wanted)}, as a process may have ${figure(files)} files open here`,
    )
  }
  const before = openFiles(program)
  using connections = await Connections.open(program.url, wanted)
  const count = connections.sockets.length
  if (count < wanted) {
    throw new Error(`${count} of ${wanted} connections could be made`)
  }
  const askAll = async () => {
    const due = connections.answers + count
    connections.write(healthRequest)
    await until('an answer on each', () => connections.answers >= due, 20_000)
    connections.assertOnly(200)
  }
  await askAll()
  const answeredBefore = healthyAnswers()
  await sleep(3_000)
  const answered = healthyAnswers() - answeredBefore
  const held = openFiles(program) - before
  if (held < wanted - 20) {
    throw new Error(`only ${held} of ${wanted} connections were still held`)
  }
  if (answered === 0) {
    throw new Error('nobody else was answered meanwhile')
  }
  await askAll()
  return `${figure(count)} held at once, each answered before and after; ${answered} healthy answers while they stood idle`
}

function openFilesMax(pid: number | 'self'): number {
  const [, soft = '0'] =
    /^Max open files\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/limits`, 'utf8')) ?? []
  return Number(soft)
}

/**
 * Sends a header section or a body that does not end, on many connections, for as long as
 * the server takes it.
 */
export function flood({ head, piece, status, otherwise = status }: Flood): Attack {
  return async ({ program }) => {
    using connections = await Connections.open(program.url, 50)
    const { sockets, counts } = connections
    let sent = 0
    const floodOne = async (socket: (typeof sockets)[number]) => {
      const closed = once(socket, 'close').catch(() => {})
      socket.write(head)
      for (let n = 0; n < 4_000 && socket.writable && !socket.readableEnded; n++) {
        sent += piece.length
        if (!socket.write(piece)) {
          await Promise.race([once(socket, 'drain').catch(() => {}), closed])
        }
      }
      socket.destroy()
    }
    await Promise.all(sockets.map(floodOne))
    connections.assertOnly(status, otherwise)
    if ((counts.get(status) ?? 0) < sockets.length / 4) {
      throw new Error(`only ${connections} for ${sockets.length}`)
    }
    return `${figure(Math.round(sent / 2 ** 20))} MiB sent, ${connections}`
  }
}

interface Flood {
  readonly head: string
  readonly piece: string
  /**
   * The answer to at least a quarter of the connections: others are cut while they send,
   * or get the other.
   */
  readonly status: number
  readonly otherwise?: number
}

export async function pipeline(target: Target): Promise<string> {
  using connections = await Connections.open(target.program.url, 20)
  const each = Math.ceil(2_000 * target.scale)
  for (const socket of connections.sockets) {
    socket.write(createRequests(each, target))
  }
  // The server closes some, while thousands of requests wait on all of them.
  const open = () => connections.sockets.filter(({ destroyed }) => !destroyed).length
  await until('an answer to each', () => connections.answers >= each * open(), 60_000)
  connections.assertOnly(200, 503)
  return `${connections}, ${open()} of ${connections.sockets.length} connections left open`
}

function createRequest(id: bigint): string {
  const body = toJson({ id, name: 'load' })
  return `POST /plants HTTP/1.1\r\n${authorized}content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
}

const createRequests = (count: number, { nextId }: Target): string =>
  Array.from({ length: count }, () => createRequest(nextId())).join('')

/**
 * Slow only for a regular expression that searches for the token's end from each space.
 */
export async function spacesInAuthorization({ program }: Target): Promise<string> {
  using connections = await Connections.open(program.url, 16)
  const spaces = ' '.repeat(16_000)
  connections.keepAsking(
    () => `GET /plants HTTP/1.1\r\nhost: h\r\nauthorization: Bearer a${spaces}b\r\n\r\n`,
  )
  await sleep(4_000)
  connections.assertOnly(401)
  return `${connections}`
}

/** Sends a byte a second of a request that does not end in its time. */
export function sendSlowly(head: string): Attack {
  return async ({ program }) => {
    using connections = await Connections.open(program.url, 500)
    connections.write(head)
    for (let seconds = 0; seconds < 12; seconds++) {
      await sleep(1_000)
      connections.write('x')
    }
    connections.assertOnly(408)
    return `${connections}`
  }
}
