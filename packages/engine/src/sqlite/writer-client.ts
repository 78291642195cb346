import { once } from 'node:events'
import { extname } from 'node:path'
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import { type StoreError, unavailableError } from '../errors.ts'
import type { Change } from '../statements/statement.ts'
import type { StorageObserver } from '../types.ts'
import type { ChangeKind } from './arrivals.ts'
import type { WriterAnswer, WriterOptions } from './writer.ts'

/**
 * The thread that has loaded Kysely compiles the statements, so that the writer need not
 * load it.
 */
export interface WriterData extends WriterOptions {
  readonly file: string
}

/** Sent by the thread that started the writer. */
export type WriterCommand =
  | { readonly connect: MessagePort; readonly kind: ChangeKind }
  | 'close'

/**
 * Starts the only thread of this process that changes rows of a store. If an error ends
 * it later, nothing here listens, so the error is an uncaught one of the process.
 */
export async function startWriter(workerData: WriterData) {
  // Its garbage is short-lived. V8 would allow as much memory as for a thread that
  // serves.
  const resourceLimits = { maxYoungGenerationSizeMb: 8 }
  // `.ts` in tests, `.js` in a build.
  const script = new URL(`./writer-thread${extname(import.meta.url)}`, import.meta.url)
  const thread = new Worker(script, { workerData, resourceLimits })
  // This rejects with the reason if the thread cannot open the store.
  await once(thread, 'message')

  return {
    /** Returns a port by which another thread sends changes of one kind. */
    connect(kind: ChangeKind) {
      const { port1, port2 } = new MessageChannel()
      thread.postMessage({ connect: port2, kind } satisfies WriterCommand, [port2])
      return port1
    },
    async [Symbol.asyncDispose]() {
      const exited = once(thread, 'exit')
      thread.postMessage('close' satisfies WriterCommand)
      await exited
    },
  }
}

/** Returns the writer as other threads use it, by a port for one kind of changes. */
export function connectToWriter(
  port: MessagePort,
  { onCommit, onCheckpointFailure }: StorageObserver = {},
) {
  let blockedBecause: string | undefined
  let reportBlocked = (_error: StoreError) => {}
  /** The groups without an answer. The answers come in their order. */
  const sentGroups: PromiseWithResolvers<readonly number[]>[] = []

  port.on('message', (answer: WriterAnswer) => {
    if ('blockedBecause' in answer) {
      blockedBecause = answer.blockedBecause
      if (blockedBecause !== undefined) {
        reportBlocked(couldNotWrite(blockedBecause))
      }
      return
    }
    if ('checkpointFailure' in answer) {
      onCheckpointFailure?.(answer.checkpointFailure)
      return
    }

    const group = sentGroups.shift()
    if ('reason' in answer) {
      group?.reject(couldNotWrite(answer.reason))
      return
    }
    if (answer.commit !== undefined) {
      onCommit?.(answer.commit)
    }
    group?.resolve(answer.affectedRows)
  })

  return {
    /** Makes the changes of a group, as `runGroup` does. */
    send(group: readonly Change[]): Promise<readonly number[]> {
      if (blockedBecause !== undefined) {
        return Promise.reject(couldNotWrite(blockedBecause))
      }
      const outcome = Promise.withResolvers<readonly number[]>()
      sentGroups.push(outcome)
      port.postMessage(group)
      return outcome.promise
    },
    /** Returns why nothing can be written, or `undefined`. */
    blockedBecause: () => blockedBecause,
    /** Sets what is called when the writer can no longer write. */
    watchFailures(report: (error: StoreError) => void): void {
      reportBlocked = report
    },
    close: () => port.close(),
  }
}

function couldNotWrite(reason: string) {
  return unavailableError('the store could not write the change', new Error(reason))
}
