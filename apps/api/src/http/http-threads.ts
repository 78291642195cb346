import { once } from 'node:events'
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { transferListOf } from '@plant-store/engine'
import type { MainStorage } from '@plant-store/persistence'
import { type BirpcReturn, createBirpc } from 'birpc'
import type { Config } from '../config.ts'
import type { HttpThread, HttpThreadData, MainThread } from './http-thread.ts'

/** A small young generation: V8's default doubles the memory and gains nothing. */
const youngGenerationMb = 12

/**
 * Starts the threads that answer requests, on one port and one store. Resolves once all
 * can listen. Their disposal answers what has arrived.
 *
 * @param mainThreadOf takes the number of a thread, from 1
 */
export async function startHttpThreads(
  config: Config,
  storage: MainStorage,
  mainThreadOf: (thread: number) => MainThread,
) {
  await using starting = new AsyncDisposableStack()
  const started: StartedThread[] = []
  starting.defer(async () => {
    // All threads, before one closes a connection: its client reconnects, and a thread
    // that closes would reset it.
    await Promise.all(started.map(({ calls }) => calls.stopListening()))
    await Promise.all(started.map(({ calls }) => calls.stop.asEvent()))
    await Promise.all(started.map(({ ended }) => ended))
  })
  const starts = Array.from({ length: config.httpThreads }, async (_, index) => {
    const thread = index + 1
    const data = { thread, config, shared: storage.share() }
    started.push(await startHttpThread(data, mainThreadOf(thread)))
  })
  await all(starts)

  const running = starting.move()
  return {
    // Concurrently. Otherwise the first clients would all connect to the first thread,
    // and stay there.
    listen: (port: number) => all(started.map(({ calls }) => calls.listen(port))),
    samples: started.map(({ calls }) => calls.samples),
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}

/** Rejects only after the last step has ended, so that the others can be undone. */
async function all(steps: readonly Promise<void>[]): Promise<void> {
  await Promise.allSettled(steps)
  await Promise.all(steps)
}

type StartedThread = {
  readonly calls: BirpcReturn<HttpThread, MainThread>
  readonly ended: Promise<void>
}

async function startHttpThread(
  data: HttpThreadData,
  mainThread: MainThread,
): Promise<StartedThread> {
  const worker = new Worker(
    new URL(`./http-thread${extname(import.meta.url)}`, import.meta.url),
    {
      workerData: data,
      transferList: transferListOf(data.shared),
      resourceLimits: { maxYoungGenerationSizeMb: youngGenerationMb },
    },
  )
  const calls = createBirpc<HttpThread, MainThread>(mainThread, {
    post: message => worker.postMessage(message),
    on: listener => void worker.on('message', listener),
    timeout: -1,
  })
  const exited = once(worker, 'exit')
  await Promise.race([calls.ready(), exited])
  // Rejects with the error that ended the thread. Before `stop` that is unhandled and
  // ends the process (serve.ts).
  const ended = exited.then(([code]) => {
    if (code !== 0) {
      process.exitCode = 1
    }
  })
  return { calls, ended }
}
