import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '@plant-store/harness'
import type { Load } from './loads.ts'

/** How long answers that are due may take after the load, on a busy machine. */
const answersMsMax = 120_000

/**
 * Puts a load on a server. Resolves to the outcome in words, and whether every answer is
 * right and none is missing.
 */
export async function putLoad(url: string, load: Load) {
  const { connections = 50, everyMs, lastsMs = 5_000, statuses, due = 0 } = load
  using resources = new DisposableStack()
  const sockets: Socket[] = []
  const answers: number[] = []
  const open = async () => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {})
    resources.defer(() => socket.destroy())
    await once(socket, 'connect').catch(() => {})
    sockets.push(socket)
    if (statuses) {
      readStatuses(socket, answers)
    }
    return socket
  }
  const areComplete = () => {
    // Where requests may be refused, a connection that was closed is due no answer.
    const waiting = statuses?.includes(503)
      ? sockets.filter(({ destroyed }) => !destroyed).length || 1
      : connections
    return answers.length >= due * waiting
  }

  while (sockets.length < connections) {
    await open()
  }
  // The server accepts one in each turn of its loop, and must have all of them before the
  // first byte arrives.
  await sleep(1_500)
  const over = AbortSignal.timeout(lastsMs)
  const sending = sockets.map(async opened => {
    let socket = opened
    send(socket, load.first)
    await sleep(500)
    send(socket, load.again)
    while (everyMs && !over.aborted) {
      await sleep(everyMs)
      if (load.first && socket.destroyed) {
        socket = await open()
        send(socket, load.first)
      }
      send(socket, load.again)
    }
  })
  await Promise.all([...sending, sleep(lastsMs)])
  await until('answers', areComplete, answersMsMax).catch(() => {})

  const counts = Array.from(
    Map.groupBy(answers, status => status),
    ([status, all]) => `${all.length} × ${status}`,
  )
  return {
    outcome: `${sockets.length} connections, ${counts.join(', ') || 'no answer'}`,
    isRight: areComplete() && answers.every(status => statuses?.includes(status)),
  }
}

/** Adds the statuses of the answers on a connection to a list. */
function readStatuses(socket: Socket, statuses: number[]) {
  let rest = ''
  socket.setEncoding('latin1').on('data', chunk => {
    const text = rest + chunk
    for (const [, status] of text.matchAll(/HTTP\/1\.1 (\d{3}) /g)) {
      statuses.push(Number(status))
    }
    // A status line may be cut in two.
    rest = text.slice(-'HTTP/1.1 200'.length)
  })
}

/** Sends a text, unless bytes that the server does not read pile up here. */
function send(socket: Socket, text = '') {
  if (socket.writableLength < 2 ** 20) {
    socket.write(text)
  }
}
