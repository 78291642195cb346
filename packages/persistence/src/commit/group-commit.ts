import { DomainError } from '@plant-store/domain'
import type { Change } from '../repositories/statements.ts'

export interface Commit {
  /** The changes in this commit. */
  readonly changes: number
  /** From the start of the transaction until it is durable. */
  readonly ms: number
}

export interface GroupCommitLimits {
  /** Pending single changes. Beyond it, `store-busy`. */
  readonly queueRowsMax: number
  /** The same for those of `submitAll`, if they are several calls. */
  readonly bulkQueueRowsMax: number
  /** The text of all pending changes in UTF-16 code units. A single change may have more. */
  readonly queueTextCharsMax: number
  /** Single changes that share one transaction. Those that were submitted together always do. */
  readonly transactionRowsMax: number
}

export const defaultGroupCommitLimits: GroupCommitLimits = {
  queueRowsMax: 10_000,
  bulkQueueRowsMax: 10_000,
  queueTextCharsMax: 8 * 1024 * 1024,
  transactionRowsMax: 1_000,
}

export interface GroupCommitOptions<Item = Change, Outcome = number> {
  /**
   * Makes the changes of a batch in order in one transaction, which other batches may share. Resolves to the affected
   * rows of each once they are durable. If it rejects, all of them are stored, or none. Calls take effect in order.
   */
  readonly runTransaction: (batch: readonly Item[]) => Promise<readonly Outcome[]>
  /** Batches under way, without an outcome. Beyond it, changes that arrive wait, and share the next one. */
  readonly batchesMax: number
  readonly limits: GroupCommitLimits
}

/** PostgreSQL's reads share transactions too. Their outcomes are rows. */
export interface GroupCommit<Item = Change, Outcome = number> {
  /** Resolves to the affected rows once the change is durable. Rejects with `store-busy`, `store-unavailable`. */
  submit(change: Item): Promise<Outcome>
  /** Like `submit`, for changes in one transaction, in order. Costs much less than a call for each. */
  submitAll(changes: readonly Item[]): Promise<readonly Outcome[]>
  /** Returns the number of pending changes. */
  pending(): number
  /** Refuses further changes, and resolves once all others have an outcome. */
  drain(): Promise<void>
}

interface Submitted<Item, Outcome> {
  readonly changes: readonly Item[]
  readonly text: number
  readonly kind: 'single' | 'bulk'
  /** @param from the index of the first of these changes */
  readonly resolve: (outcomes: readonly Outcome[], from: number) => void
  readonly reject: (error: unknown) => void
}

/**
 * Turns of the event loop between the end of a batch and the next one, for which changes wait on PostgreSQL. Clients
 * with an answer send their next change in that time, and share it.
 */
const turnsAfterBatch = 2

/** Makes changes that arrive together, or while `batchesMax` batches are under way, share a transaction. */
export function createGroupCommit<Item extends readonly unknown[] = Change, Outcome = number>({
  runTransaction,
  batchesMax,
  limits,
}: GroupCommitOptions<Item, Outcome>): GroupCommit<Item, Outcome> {
  const queue: Submitted<Item, Outcome>[] = []
  const underWay = new Set<Promise<void>>()
  const rowsMax = { single: limits.queueRowsMax, bulk: limits.bulkQueueRowsMax }
  const pending = { single: 0, bulk: 0 }
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
    while (queue.length > 0 && underWay.size < batchesMax) {
      const running = runBatch(takeBatch()).finally(() => {
        underWay.delete(running)
        if (isClosed) runQueue()
        else if (queue.length > 0) schedule(turnsAfterBatch)
      })
      underWay.add(running)
    }
  }

  const takeBatch = () => {
    let rows = 0
    const end = queue.findIndex(({ changes }, index) => {
      rows += changes.length
      return index > 0 && rows > limits.transactionRowsMax
    })
    return queue.splice(0, end === -1 ? queue.length : end)
  }

  const runBatch = async (batch: readonly Submitted<Item, Outcome>[]) => {
    const [outcome] = await Promise.allSettled([runTransaction(batch.flatMap(({ changes }) => changes))])
    let from = 0
    for (const { changes, text, kind, resolve, reject } of batch) {
      pending[kind] -= changes.length
      pendingText -= text
      if (outcome.status === 'fulfilled') resolve(outcome.value, from)
      else reject(outcome.reason)
      from += changes.length
    }
  }

  const push = (submitted: Submitted<Item, Outcome>) => {
    if (isClosed) throw new DomainError('store-unavailable', 'the store is closed')
    const { kind, text } = submitted
    const rows = submitted.changes.length
    const isTooMuch =
      (pending[kind] > 0 && pending[kind] + rows > rowsMax[kind]) ||
      (pendingText > 0 && pendingText + text > limits.queueTextCharsMax)
    if (isTooMuch) throw new DomainError('store-busy', 'too many changes are pending')
    pending[kind] += rows
    pendingText += text
    queue.push(submitted)
    // Requests of the same turn share a transaction too.
    schedule(1)
  }
  const enqueue = <Result>(
    kind: 'single' | 'bulk',
    changes: readonly Item[],
    resultOf: (outcomes: readonly Outcome[], from: number) => Result,
  ) =>
    new Promise<Result>((resolve, reject) => {
      const text = textLength(changes)
      push({ kind, changes, text, reject, resolve: (...outcome) => resolve(resultOf(...outcome)) })
    })

  return {
    submit: change => enqueue('single', [change], (outcomes, from) => outcomes[from] as Outcome),
    submitAll: changes =>
      changes.length === 0
        ? Promise.resolve([])
        : enqueue('bulk', changes, (outcomes, from) => outcomes.slice(from, from + changes.length)),
    pending: () => pending.single + pending.bulk,
    async drain() {
      isClosed = true
      runQueue()
      while (underWay.size > 0) await Promise.all(underWay)
    },
  }
}

/** Calls back after this many turns of the event loop, at least 1. */
function afterTurns(turns: number, act: () => void): void {
  setImmediate(() => (turns > 1 ? afterTurns(turns - 1, act) : act()))
}

function textLength(changes: readonly (readonly unknown[])[]): number {
  let length = 0
  for (const change of changes) for (const part of change) if (typeof part === 'string') length += part.length
  return length
}
