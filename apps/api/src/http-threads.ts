import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { Worker } from 'node:worker_threads'
import { type SharedStorage, transferListOf } from '@plant-store/persistence'
import { createBirpc } from 'birpc'
import type { Config } from './config.ts'
import type { HttpThread, HttpThreadData, HttpThreadOwner } from './http-thread.ts'
import type { Samples } from './metrics.ts'

/** The threads that answer requests, on one port and one store. Their disposal answers what has arrived. */
export interface HttpThreads extends AsyncDisposable {
  /**
   * Resolves once all threads can listen.
   *
   * @param ownerOf takes the number of a thread, from 1
   */
  start(
    config: Config,
    share: () => SharedStorage,
    ownerOf: (thread: number) => HttpThreadOwner,
  ): Promise<void>
  listen(): Promise<void>
  figures(): Promise<Samples[]>
}

/** Separate counters for some 8,000 networks. */
const wrongTokenCountsBytes = 64 * 1024

/** A thread that takes longer is counted with its previous figures. */
const scrapeTimeoutMs = 1_000

/** A small young generation: V8's default doubles the memory and gains nothing. */
const youngGenerationMb = 12

// With V8's defaults, pages of long texts pile up to several times the memory in use.
setFlagsFromString('--initial-old-space-size=32')
setFlagsFromString('--heap-growing-percent=50')

export function createHttpThreads(): HttpThreads {
  const threads: RunningThread[] = []
  return {
    async start(config, share, ownerOf) {
      const wrongTokenCounts = new SharedArrayBuffer(wrongTokenCountsBytes)
      const starts = Array.from({ length: config.httpThreads }, async (_, index) => {
        const thread = index + 1
        const data = { thread, config, shared: share(), wrongTokenCounts }
        threads.push(await startHttpThread(data, ownerOf(thread)))
      })
      await all(starts)
    },
    // Concurrently. Otherwise the first clients would all connect to the first thread, and stay there.
    listen: () => all(threads.map(thread => thread.listen())),
    figures: () => Promise.all(threads.map(thread => thread.figures())),
    async [Symbol.asyncDispose]() {
      // All threads, before one closes a connection: its client reconnects, and a thread that closes would
      // reset it.
      await Promise.all(threads.map(thread => thread.stopListening()))
      await Promise.all(threads.map(thread => thread.stop()))
    },
  }
}

export async function withinScrapeTime(work: Promise<void>): Promise<void> {
  await Promise.race([work, setTimeout(scrapeTimeoutMs, undefined, { ref: false })])
}

/** Rejects only after the last step has ended, so that the others can be undone. */
async function all(steps: readonly Promise<void>[]): Promise<void> {
  await Promise.allSettled(steps)
  await Promise.all(steps)
}

type RunningThread = Awaited<ReturnType<typeof startHttpThread>>

async function startHttpThread(data: HttpThreadData, owner: HttpThreadOwner) {
  const worker = new Worker(new URL('./http-thread.js', import.meta.url), {
    workerData: data,
    transferList: transferListOf(data.shared),
    resourceLimits: { maxYoungGenerationSizeMb: youngGenerationMb },
  })
  const thread = createBirpc<HttpThread, HttpThreadOwner>(owner, {
    post: message => worker.postMessage(message),
    on: listener => void worker.on('message', listener),
    timeout: -1,
  })
  const exited = once(worker, 'exit')
  await Promise.race([thread.ready(), exited])
  // Rejects with the error that ended the thread. Before `stop` that is unhandled and ends the process
  // (serve.ts).
  const ended = exited.then(([code]) => {
    if (code !== 0) process.exitCode = 1
  })

  let figures: Samples = {}
  return {
    listen: thread.listen,
    stopListening: thread.stopListening,
    async figures() {
      const asked = thread.figures().then(answer => {
        figures = answer
      })
      await withinScrapeTime(asked)
      return figures
    },
    async stop() {
      await thread.stop.asEvent()
      await ended
    },
  }
}
