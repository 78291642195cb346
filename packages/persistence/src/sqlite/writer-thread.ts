import { once } from 'node:events'
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import { DomainError } from '@plant-store/domain'
import type { Commit, Write } from '../commit-queue.ts'
import type { WriterAnswer, WriterCommand, WriterData } from './writer.ts'

/** The thread that commits, as its owner sees it. */
export interface WriterThread {
  /** @returns a port for {@link connectWriter}, here or in another thread */
  open(): MessagePort
  close(): Promise<void>
}

export async function startWriterThread(workerData: WriterData): Promise<WriterThread> {
  // Its garbage is small and short-lived; left alone, V8 would give it as much memory as to a thread that serves.
  const resourceLimits = { maxYoungGenerationSizeMb: 8 }
  const worker = new Worker(new URL('./writer.js', import.meta.url), { workerData, resourceLimits })
  const command = (message: WriterCommand, transfer: MessagePort[] = []) =>
    worker.postMessage(message, transfer)
  await once(worker, 'message')

  return {
    open() {
      const { port1, port2 } = new MessageChannel()
      command({ join: port2 }, [port2])
      return port1
    },
    async close() {
      const exited = once(worker, 'exit')
      command('close')
      await exited
    },
  }
}

/** A writer as those see it who write through it. */
export interface Writer {
  /** Resolves once the changes are durable; calls take effect in their order. */
  commit(writes: readonly Write[]): Promise<readonly number[]>
  /** Why nothing can be written at the moment; `undefined` when it can. */
  failure(): string | undefined
  close(): void
}

export function connectWriter(port: MessagePort, onCommit: (commit: Commit) => void = () => {}): Writer {
  let failure: string | undefined
  // The writer answers in the order of the batches, several at a time when they shared a commit.
  const underWay: (PromiseWithResolvers<readonly number[]> & { readonly rows: number })[] = []
  const settle = (rows: number, outcome: (batch: (typeof underWay)[number], from: number) => void) => {
    for (let from = 0; from < rows; ) {
      const batch = underWay.shift()
      if (batch === undefined) throw new Error(`the writer answered ${rows - from} changes that nobody made`)
      outcome(batch, from)
      from += batch.rows
    }
  }

  port.on('message', (answer: WriterAnswer) => {
    if ('changed' in answer) {
      const { changed, commit } = answer
      if (commit !== undefined) onCommit(commit)
      settle(changed.length, (batch, from) => batch.resolve(changed.slice(from, from + batch.rows)))
    } else if ('failure' in answer) {
      settle(answer.rows, batch => batch.reject(couldNotWrite(answer.failure)))
    } else {
      failure = answer.notReady
    }
  })

  return {
    commit(writes) {
      if (failure !== undefined) return Promise.reject(couldNotWrite(failure))
      const batch = { rows: writes.length, ...Promise.withResolvers<readonly number[]>() }
      underWay.push(batch)
      port.postMessage(writes)
      return batch.promise
    },
    failure: () => failure,
    close: () => port.close(),
  }
}

const couldNotWrite = (reason: string) => unavailable('the store could not write the change', reason)

/** @param reason as an error, which is what logs write out and a string is not */
export function unavailable(message: string, reason: string): DomainError {
  return new DomainError('store-unavailable', message, { cause: new Error(reason) })
}
