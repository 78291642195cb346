import { once } from 'node:events'
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { transferListOf } from '@plant-store/engine'
import type { MainStorage } from '@plant-store/persistence'
import { createBirpc } from 'birpc'
import type { Config } from '../config.ts'
import type { HttpThread, HttpThreadData, MainThread } from './http-thread.ts'

/**
 * A small young generation, because V8's default doubles the memory and gains nothing.
 */
const youngGenerationMb = 12

/**
 * Starts the threads that answer requests, on one port and one store. Resolves once all
 * can listen.
 *
 * @param mainThreadOf takes the number of a thread, counted from 1
 */
export async function startHttpThreads(
  config: Config,
  storage: MainStorage,
  mainThreadOf: (thread: number) => MainThread,
) {
  const started: StartedThread[] = []
  const starts = Array.from({ length: config.httpThreads }, async (_, index) => {
    const thread = index + 1
    const data = { thread, config, shared: storage.share() }
    started.push(await startHttpThread(data, mainThreadOf(thread)))
  })
  try {
    await settleAll(starts)
  } catch (error) {
    await stopAll(started)
    throw error
  }

  return {
    /**
     * Resolves once all of them listen. If one listened first, the first clients would
     * all connect to it, and stay there.
     */
    listen: (port: number) => settleAll(started.map(({ calls }) => calls.listen(port))),
    /** Resolves once `/readyz` fails in all of them. All else still works. */
    leave: () => settleAll(started.map(({ calls }) => calls.leave())),
    /** Gives each connection one more answer, and ends the threads. */
    stop: () => stopAll(started),
    samples: started.map(({ calls }) => calls.samples),
  }
}

/**
 * No thread listens any more before one closes a connection. Its client reconnects, and a
 * thread that stops listening would reset the new connection.
 */
async function stopAll(threads: readonly StartedThread[]) {
  await Promise.all(threads.map(({ calls }) => calls.stopListening()))
  await Promise.all(threads.map(({ calls }) => calls.stop.asEvent()))
  await Promise.all(threads.map(({ ended }) => ended))
}

/** Rejects only after the last step has ended, so that the others can be undone. */
export async function settleAll(steps: readonly Promise<void>[]): Promise<void> {
  await Promise.allSettled(steps)
  await Promise.all(steps)
}

type StartedThread = Awaited<ReturnType<typeof startHttpThread>>

/** Returns the calls to a thread, and `ended`, which rejects with what ended it. */
async function startHttpThread(data: HttpThreadData, mainThread: MainThread) {
  // The thread's file lies beside this one and has the same extension: .ts in the
  // sources, .js in a bundle.
  const file = `./http-thread${extname(import.meta.url)}`
  const worker = new Worker(new URL(file, import.meta.url), {
    workerData: data,
    transferList: transferListOf(data.shared),
    resourceLimits: { maxYoungGenerationSizeMb: youngGenerationMb },
  })
  const calls = createBirpc<HttpThread, MainThread>(mainThread, {
    post: message => worker.postMessage(message),
    on: listener => void worker.on('message', listener),
    timeout: -1,
  })
  const exited = once(worker, 'exit')
  await Promise.race([calls.ready(), exited])
  // Rejects if the thread throws. Until a stop awaits this, the rejection is unhandled,
  // and `serve.ts` ends the process.
  const ended = exited.then(([code]) => {
    if (code !== 0) {
      process.exitCode = 1
    }
  })
  return { calls, ended }
}
