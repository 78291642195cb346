import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { DomainError } from '@plant-store/domain'
import type { Write } from '../commit-queue.ts'
import type { WriterAnswer } from './writer.ts'

/** This thread's end of the writer. */
export interface WriterThread {
  /** Resolves once the changes are durable. One call at a time. */
  commit(writes: readonly Write[]): Promise<readonly number[]>
  /** Why nothing can be written at the moment; `undefined` when it can. */
  failure(): string | undefined
  close(): Promise<void>
}

export async function startWriterThread(file: string): Promise<WriterThread> {
  const worker = new Worker(new URL('./writer.js', import.meta.url), { workerData: file })
  let failure: string | undefined
  let underWay: PromiseWithResolvers<readonly number[]> | undefined

  await once(worker, 'message')
  worker.on('message', (answer: WriterAnswer) => {
    if ('changed' in answer) {
      underWay?.resolve(answer.changed)
    } else if ('failure' in answer) {
      if (!answer.ready) failure = answer.failure
      underWay?.reject(unavailable(answer.failure))
    } else {
      failure = undefined
    }
  })

  return {
    commit(writes) {
      if (failure !== undefined) return Promise.reject(unavailable(failure))
      underWay = Promise.withResolvers()
      worker.postMessage(writes)
      return underWay.promise
    },
    failure: () => failure,
    async close() {
      const exited = once(worker, 'exit')
      worker.postMessage('close')
      await exited
    },
  }
}

function unavailable(cause: string): DomainError {
  return new DomainError('store-unavailable', 'the store could not write the change', { cause })
}
