import { DomainError } from '@plant-store/domain'
import type { WriteStatement } from './statements.ts'

/** One change: a statement and its parameters. Plain data, so that it can cross to another thread. */
export type Write = readonly [statement: WriteStatement, ...parameters: (bigint | string | null)[]]

export interface CommitQueueLimits {
  /** Changes that may wait for their commit; past it, `store-busy`. */
  readonly queueRowsMax: number
  /** The text in them, in UTF-16 code units. */
  readonly queueTextMax: number
  /** Changes that share one commit. */
  readonly batchRowsMax: number
}

export const defaultCommitQueueLimits: CommitQueueLimits = {
  queueRowsMax: 10_000,
  queueTextMax: 64 * 1024 * 1024,
  batchRowsMax: 1_000,
}

export interface CommitQueue {
  /**
   * @returns how many rows it changed, once they are durable
   * @throws DomainError `store-busy`, `store-unavailable`
   */
  write(write: Write): Promise<number>
  /** Refuses every change from now on, and resolves once none waits any more. */
  drained(): Promise<void>
}

interface Waiting {
  readonly write: Write
  readonly text: number
  readonly resolve: (changed: number) => void
  readonly reject: (error: unknown) => void
}

/**
 * Lets changes that arrive while a commit is under way share the next one.
 *
 * @param commit makes the changes in order in one transaction, and resolves to the number of rows that each changed
 *   once they are durable; when it rejects, all of them share its error.
 */
export function createCommitQueue(
  commit: (writes: readonly Write[]) => Promise<readonly number[]>,
  limits: CommitQueueLimits,
): CommitQueue {
  let waiting: Waiting[] = []
  let text = 0
  let working: Promise<void> | undefined
  let closed = false

  const work = async () => {
    // Requests that came in with the same turn of the event loop share the first commit too.
    await new Promise(setImmediate)
    while (waiting.length > 0) {
      const batch = waiting.slice(0, limits.batchRowsMax)
      waiting = waiting.slice(limits.batchRowsMax)
      for (const each of batch) text -= each.text
      try {
        const changed = await commit(batch.map(({ write }) => write))
        for (const [index, each] of batch.entries()) each.resolve(changed[index] as number)
      } catch (error) {
        for (const each of batch) each.reject(error)
      }
    }
    working = undefined
  }

  return {
    write(write) {
      if (closed) return Promise.reject(new DomainError('store-unavailable', 'the store is closed'))
      const length = textLength(write)
      if (waiting.length >= limits.queueRowsMax || text + length > limits.queueTextMax) {
        return Promise.reject(new DomainError('store-busy', 'too many changes are waiting to be written'))
      }
      return new Promise((resolve, reject) => {
        waiting.push({ write, text: length, resolve, reject })
        text += length
        working ??= work()
      })
    },
    async drained() {
      closed = true
      await working
    },
  }
}

function textLength(write: Write): number {
  let length = 0
  for (const part of write) if (typeof part === 'string') length += part.length
  return length
}
