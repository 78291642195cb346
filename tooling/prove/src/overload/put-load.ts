import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '@plant-store/harness'
import { figure } from '../part.ts'
import type { Load } from './loads.ts'

/** How long answers that are due may take after the load, on a busy machine. */
const answersMsMax = 120_000

/**
 * Puts a load on a server. Resolves to the outcome in words, and whether every answer is
 * right and none is missing.
 */
export async function putLoad(url: string, load: Load) {
  using connections = connectionsTo(url, load)
  const { sockets, answers } = connections
  await (load.flood ? flood(connections, load) : send(connections, load))

  const byStatus = [...Map.groupBy(answers, status => status)]
  const counts = byStatus.map(([status, all]) => `${figure(all.length)} × ${status}`)
  const opened = `${figure(sockets.length)} connections`
  const { statuses = [] } = load
  const areRight = answers.every(status => statuses.includes(status))
  return {
    outcome: `${opened}, ${counts.join(', ') || 'no answer'}`,
    isRight: areRight && !connections.lackAnswers(),
  }
}

type Connections = ReturnType<typeof connectionsTo>

function connectionsTo(url: string, load: Load) {
  const { hostname, port } = new URL(url)
  const sockets: Socket[] = []
  const answers: number[] = []
  return {
    sockets,
    /** The statuses of the answers. */
    answers,
    async open() {
      const socket = connect(Number(port), hostname).on('error', () => {})
      await once(socket, 'connect').catch(() => {})
      sockets.push(socket)
      if (load.unread) {
        return socket.pause()
      }
      let rest = ''
      return socket.on('data', (chunk: Buffer) => {
        const text = rest + chunk.toString('latin1')
        for (const [, status] of text.matchAll(/HTTP\/1\.1 (\d{3}) /g)) {
          answers.push(Number(status))
        }
        // A status line may be cut in two.
        rest = text.slice(-'HTTP/1.1 200'.length)
      })
    },
    /** Where requests may be refused, a connection that was closed is due none. */
    lackAnswers() {
      const { answers: due = 0, flood, statuses } = load
      const mayClose = !flood && statuses?.includes(503)
      const open = sockets.filter(({ destroyed }) => !destroyed)
      const share = mayClose ? open.length / sockets.length : 1
      return answers.length < Math.max(Math.min(due, 1), due * share)
    },
    [Symbol.dispose]() {
      for (const socket of sockets) {
        socket.destroy()
      }
    },
  }
}

/** Sends what a load says on its connections, and waits for the answers. */
async function send(connections: Connections, load: Load) {
  const { sockets } = connections
  const { seconds = 4, everyMs = seconds * 1_000 } = load
  const sendOnAll = (part: 'first' | 'second' | 'again') => {
    // Bytes that the server does not read stay here, and must not pile up.
    const ready = sockets.filter(each => each.writable && each.writableLength < 2 ** 20)
    for (const socket of ready) {
      socket.write(load[part] ?? '')
    }
  }
  while (sockets.length < load.connections) {
    await connections.open()
  }
  // The server accepts one in each turn of its loop, and must have all of them before the
  // first byte arrives.
  await sleep(1_500)
  sendOnAll('first')
  await sleep(500)
  sendOnAll('second')
  await sleep(500)
  for (let sentMs = 0; sentMs < seconds * 1_000; sentMs += everyMs) {
    await sleep(everyMs)
    sendOnAll('again')
  }
  await until('answers', () => !connections.lackAnswers(), answersMsMax).catch(() => {})
}

/** Sends without end, on one new connection after another for each of the load's. */
async function flood({ open }: Connections, load: Load) {
  const { connections: length, seconds = 4 } = load
  const endMs = performance.now() + seconds * 1_000
  const isOver = () => performance.now() >= endMs
  const texts = function* () {
    yield load.first
    while (!isOver()) {
      yield load.flood
    }
  }
  const floodOne = async () => {
    while (!isOver()) {
      const socket = await open()
      await pipeline(Readable.from(texts()), socket, { end: false }).catch(() => {})
      socket.destroy()
    }
  }
  await Promise.all(Array.from({ length }, floodOne))
}
