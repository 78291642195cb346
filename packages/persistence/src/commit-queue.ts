import { DomainError } from '@plant-store/domain'
import type { WriteStatement } from './statements.ts'

/** One change: a statement and its parameters. Plain data, so that it can cross to another thread. */
export type Write = readonly [statement: WriteStatement, ...parameters: (bigint | string | null)[]]

/** A transaction that was committed. */
export interface Commit {
  /** Changes that shared it. */
  readonly rows: number
  /** From its beginning until it was durable. */
  readonly ms: number
}

export interface CommitQueueLimits {
  /** Changes that may be waiting for their commit or in it; past it, `store-busy`. */
  readonly queueRowsMax: number
  /** The text in them, in UTF-16 code units. One change that waits alone may have more. */
  readonly queueTextMax: number
  /** Changes that share one commit. */
  readonly batchRowsMax: number
}

export const defaultCommitQueueLimits: CommitQueueLimits = {
  queueRowsMax: 10_000,
  queueTextMax: 8 * 1024 * 1024,
  batchRowsMax: 1_000,
}

export interface CommitQueueOptions {
  /**
   * Makes the changes in order in one transaction, and resolves to the number of rows that each changed once they are
   * durable; when it rejects, all of them share its error. Calls take effect in their order.
   */
  readonly commit: (writes: readonly Write[]) => Promise<readonly number[]>
  /** How many calls of `commit` may be under way at once; what comes in meanwhile shares the next one. */
  readonly commitsAtOnce: number
  readonly limits: CommitQueueLimits
}

/**
 * Where changes wait for the commit before theirs, the next one begins so many turns of the event loop after it: those
 * who were just answered come again meanwhile, and share it. A turn takes as long as there is something to do.
 */
const turnsAfterCommit = 2

export interface CommitQueue {
  /**
   * @returns how many rows it changed, once they are durable
   * @throws DomainError `store-busy`, `store-unavailable`
   */
  write(write: Write): Promise<number>
  /** How many changes have no outcome yet. */
  waiting(): number
  /** Refuses every change from now on, and resolves once all others have their outcome. */
  drained(): Promise<void>
}

interface Waiting {
  readonly write: Write
  readonly text: number
  readonly resolve: (changed: number) => void
  readonly reject: (error: unknown) => void
}

/** Lets changes that arrive together, or while a commit is under way, share a commit. */
export function createCommitQueue({ commit, commitsAtOnce, limits }: CommitQueueOptions): CommitQueue {
  let waiting: Waiting[] = []
  const underWay = new Set<Promise<void>>()
  let rows = 0
  let text = 0
  let isScheduled = false
  let isClosed = false

  const schedule = (turns: number) => {
    if (isScheduled) return
    isScheduled = true
    const turn = () => {
      if (--turns > 0) setImmediate(turn)
      else commitWaiting()
    }
    setImmediate(turn)
  }

  const commitWaiting = () => {
    isScheduled = false
    while (waiting.length > 0 && underWay.size < commitsAtOnce) {
      const batch = waiting.slice(0, limits.batchRowsMax)
      waiting = waiting.slice(limits.batchRowsMax)
      const settled = settle(batch).finally(() => {
        underWay.delete(settled)
        if (isClosed) commitWaiting()
        else if (waiting.length > 0) schedule(turnsAfterCommit)
      })
      underWay.add(settled)
    }
  }

  const settle = async (batch: readonly Waiting[]) => {
    const outcome = await commit(batch.map(({ write }) => write)).then(
      changed => (each: Waiting, index: number) => each.resolve(changed[index] as number),
      error => (each: Waiting) => each.reject(error),
    )
    rows -= batch.length
    for (const [index, each] of batch.entries()) {
      text -= each.text
      outcome(each, index)
    }
  }

  return {
    write(write) {
      if (isClosed) return Promise.reject(new DomainError('store-unavailable', 'the store is closed'))
      const length = textLength(write)
      const isTooMuch = text > 0 && text + length > limits.queueTextMax
      if (rows >= limits.queueRowsMax || isTooMuch) {
        return Promise.reject(new DomainError('store-busy', 'too many changes are waiting to be written'))
      }
      rows++
      text += length
      return new Promise((resolve, reject) => {
        waiting.push({ write, text: length, resolve, reject })
        // Requests that come in with the same turn of the event loop share a commit too.
        schedule(1)
      })
    },
    waiting: () => rows,
    async drained() {
      isClosed = true
      commitWaiting()
      while (underWay.size > 0) await Promise.all(underWay)
    },
  }
}

function textLength(write: Write): number {
  let length = 0
  for (const part of write) if (typeof part === 'string') length += part.length
  return length
}
