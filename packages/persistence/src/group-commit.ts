import { DomainError } from '@plant-store/domain'
import type { ChangeStatement } from './shared-statements.ts'

/** One insert, replacement or removal: a statement and its parameters, as plain data that can cross threads. */
export type Change = readonly [statement: ChangeStatement, ...parameters: (bigint | string | null)[]]

export interface Commit {
  /** Changes that shared it. */
  readonly changes: number
  /** From its beginning until it was durable. */
  readonly ms: number
}

export interface GroupCommitLimits {
  /** Changes without an outcome; past it, `store-busy`. */
  readonly queueRowsMax: number
  /** The text in them, in UTF-16 code units. One change that waits alone may have more. */
  readonly queueTextMax: number
  /** Changes that share one transaction. */
  readonly batchRowsMax: number
}

export const defaultGroupCommitLimits: GroupCommitLimits = {
  queueRowsMax: 10_000,
  queueTextMax: 8 * 1024 * 1024,
  batchRowsMax: 1_000,
}

export interface GroupCommitOptions {
  /**
   * Makes the changes of a batch in order in one transaction, and resolves to the affected rows of each once they are
   * durable. When it rejects, none was made, and all share its error. Calls take effect in their order.
   */
  readonly runTransaction: (batch: readonly Change[]) => Promise<readonly number[]>
  /** Transactions under way at once. Changes that arrive meanwhile share the next one. */
  readonly transactionsMax: number
  readonly limits: GroupCommitLimits
}

export interface GroupCommit {
  /** Resolves to the affected rows once the change is durable. Rejects with `store-busy`, `store-unavailable`. */
  submit(change: Change): Promise<number>
  /** Returns how many changes have no outcome yet. */
  pending(): number
  /** Refuses every change from now on, and resolves once all others have their outcome. */
  drain(): Promise<void>
}

interface PendingChange {
  readonly change: Change
  readonly text: number
  readonly resolve: (affectedRows: number) => void
  readonly reject: (error: unknown) => void
}

/**
 * When changes wait for a transaction to end, the next one begins this many turns of the event loop later: clients that
 * were just answered send their next change meanwhile, and share it.
 */
const turnsAfterTransaction = 2

/** Lets changes that arrive together, or while a transaction is under way, share a transaction. */
export function createGroupCommit({
  runTransaction,
  transactionsMax,
  limits,
}: GroupCommitOptions): GroupCommit {
  let queue: PendingChange[] = []
  const transactions = new Set<Promise<void>>()
  let pending = 0
  let pendingText = 0
  let isScheduled = false
  let isClosed = false

  const schedule = (turns: number) => {
    if (isScheduled) return
    isScheduled = true
    afterTurns(turns, runQueue)
  }

  const runQueue = () => {
    isScheduled = false
    while (queue.length > 0 && transactions.size < transactionsMax) {
      const batch = queue.slice(0, limits.batchRowsMax)
      queue = queue.slice(limits.batchRowsMax)
      const transaction = runBatch(batch).finally(() => {
        transactions.delete(transaction)
        if (isClosed) runQueue()
        else if (queue.length > 0) schedule(turnsAfterTransaction)
      })
      transactions.add(transaction)
    }
  }

  const runBatch = async (batch: readonly PendingChange[]) => {
    const [outcome] = await Promise.allSettled([runTransaction(batch.map(({ change }) => change))])
    pending -= batch.length
    for (const [index, { text, resolve, reject }] of batch.entries()) {
      pendingText -= text
      if (outcome.status === 'fulfilled') resolve(outcome.value[index] as number)
      else reject(outcome.reason)
    }
  }

  return {
    submit(change) {
      if (isClosed) return Promise.reject(new DomainError('store-unavailable', 'the store is closed'))
      const text = textLength(change)
      const isTooMuch = pendingText > 0 && pendingText + text > limits.queueTextMax
      if (pending >= limits.queueRowsMax || isTooMuch) {
        return Promise.reject(new DomainError('store-busy', 'too many changes are waiting to be written'))
      }
      pending++
      pendingText += text
      return new Promise((resolve, reject) => {
        queue.push({ change, text, resolve, reject })
        // Requests of the same turn of the event loop share a transaction too.
        schedule(1)
      })
    },
    pending: () => pending,
    async drain() {
      isClosed = true
      runQueue()
      while (transactions.size > 0) await Promise.all(transactions)
    },
  }
}

/** Calls back after this many turns of the event loop, 1 or more. */
function afterTurns(turns: number, act: () => void): void {
  setImmediate(() => (turns > 1 ? afterTurns(turns - 1, act) : act()))
}

function textLength(change: Change): number {
  let length = 0
  for (const part of change) if (typeof part === 'string') length += part.length
  return length
}
