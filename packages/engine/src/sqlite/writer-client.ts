import { once } from 'node:events'
import { extname } from 'node:path'
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import { type StoreError, unavailable } from '../errors.ts'
import type { Change, ChangeStatement } from '../statements/statement.ts'
import type { StorageObserver } from '../types.ts'
import type { ChangeKind } from './arrivals.ts'
import type { WriterAnswer } from './writer.ts'

export interface WriterData {
  readonly file: string
  readonly lockTimeoutMs: number
  /** Compiled by the thread that has loaded Kysely, so that the writer need not. */
  readonly changeStatements: ReadonlyMap<string, ChangeStatement>
}

/** Sent by the thread that started the writer. */
export type WriterCommand =
  | { readonly connect: MessagePort; readonly kind: ChangeKind }
  | 'close'

/** Starts the only thread that writes to a store. */
export async function startWriter(workerData: WriterData) {
  // Its garbage is short-lived. V8's default is as much memory as for a thread that serves.
  const resourceLimits = { maxYoungGenerationSizeMb: 8 }
  // `.ts` in tests, `.js` in a build.
  const script = new URL(`./writer-thread${extname(import.meta.url)}`, import.meta.url)
  const thread = new Worker(script, { workerData, resourceLimits })
  const tell = (command: WriterCommand, transfer: MessagePort[] = []) =>
    thread.postMessage(command, transfer)
  // Rejects with the reason why the thread could not open the store.
  await once(thread, 'message')

  return {
    connect(kind: ChangeKind): MessagePort {
      const { port1, port2 } = new MessageChannel()
      tell({ connect: port2, kind }, [port2])
      return port1
    },
    async [Symbol.asyncDispose]() {
      const exited = once(thread, 'exit')
      tell('close')
      await exited
    },
  }
}

/** Returns the writer as other threads use it. */
export function connectToWriter(
  port: MessagePort,
  { onCommit = () => {}, onCheckpointFailure = () => {} }: StorageObserver = {},
) {
  let blockedBecause: string | undefined
  let onBlocked = (_error: StoreError) => {}
  const underWay: PromiseWithResolvers<readonly number[]>[] = []

  // One answer for each group, in their order.
  port.on('message', (answer: WriterAnswer) => {
    if ('blockedBecause' in answer) {
      blockedBecause = answer.blockedBecause
      if (blockedBecause !== undefined) {
        onBlocked(couldNotWrite(blockedBecause))
      }
      return
    }
    if ('checkpointFailure' in answer) {
      return onCheckpointFailure(answer.checkpointFailure)
    }

    const group = underWay.shift()
    if ('reason' in answer) {
      group?.reject(couldNotWrite(answer.reason))
      return
    }
    if (answer.commit !== undefined) {
      onCommit(answer.commit)
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
      underWay.push(outcome)
      port.postMessage(group)
      return outcome.promise
    },
    /** Returns why nothing can be written, or `undefined`. */
    blockedBecause: () => blockedBecause,
    onFailure(report: typeof onBlocked) {
      onBlocked = report
    },
    close: () => port.close(),
  }
}

const couldNotWrite = (reason: string) =>
  unavailable('the store could not write the change', new Error(reason))
