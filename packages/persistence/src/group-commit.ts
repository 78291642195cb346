import { DomainError } from '@plant-store/domain'
import type { ChangeStatement } from './shared-statements.ts'

/** One change: a statement and its parameters, as plain data that can cross threads. */
export type Change = readonly [statement: ChangeStatement, ...parameters: (bigint | string | null)[]]

export interface Commit {
  /** The changes in this commit. */
  readonly changes: number
  /** From the start of the transaction until it is durable. */
  readonly ms: number
}

export interface GroupCommitLimits {
  /** Pending changes. Beyond it, `store-busy`. */
  readonly queueRowsMax: number
  /** Their text in UTF-16 code units. A single change may have more. */
  readonly queueTextMax: number
  /** Single changes that share one transaction. Those that were submitted together always do. */
  readonly batchRowsMax: number
}

export const defaultGroupCommitLimits: GroupCommitLimits = {
  queueRowsMax: 10_000,
  queueTextMax: 8 * 1024 * 1024,
  batchRowsMax: 1_000,
}

export interface GroupCommitOptions {
  /**
   * Makes the changes of a batch in order in one transaction, which other batches may share. Resolves to the affected
   * rows of each once they are durable. If it rejects, all of them are stored, or none. Calls take effect in order.
   */
  readonly runTransaction: (batch: readonly Change[]) => Promise<readonly number[]>
  /** Batches under way, without an outcome. Beyond it, changes that arrive wait, and share the next one. */
  readonly batchesMax: number
  readonly limits: GroupCommitLimits
}

export interface GroupCommit {
  /** Resolves to the affected rows once the change is durable. Rejects with `store-busy`, `store-unavailable`. */
  submit(change: Change): Promise<number>
  /** Like `submit`, for changes in one transaction, in order. Costs much less than a call for each. */
  submitAll(changes: readonly Change[]): Promise<readonly number[]>
  /** Returns the number of pending changes. */
  pending(): number
  /** Refuses further changes, and resolves once all others have an outcome. */
  drain(): Promise<void>
}

interface Submitted {
  readonly changes: readonly Change[]
  readonly text: number
  /** @param from the index of the first of these changes */
  readonly resolve: (affectedRows: readonly number[], from: number) => void
  readonly reject: (error: unknown) => void
}

/**
 * Turns of the event loop between the end of a batch and the next one, for which changes wait on PostgreSQL. Clients
 * with an answer send their next change in that time, and share it.
 */
const turnsAfterBatch = 2

/** Makes changes that arrive together, or while `batchesMax` batches are under way, share a transaction. */
export function createGroupCommit({ runTransaction, batchesMax, limits }: GroupCommitOptions): GroupCommit {
  const queue: Submitted[] = []
  const underWay = new Set<Promise<void>>()
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
      return index > 0 && rows > limits.batchRowsMax
    })
    return queue.splice(0, end === -1 ? queue.length : end)
  }

  const runBatch = async (batch: readonly Submitted[]) => {
    const [outcome] = await Promise.allSettled([runTransaction(batch.flatMap(({ changes }) => changes))])
    let from = 0
    for (const { changes, text, resolve, reject } of batch) {
      pendingText -= text
      if (outcome.status === 'fulfilled') resolve(outcome.value, from)
      else reject(outcome.reason)
      from += changes.length
    }
    pending -= from
  }

  const push = (changes: readonly Change[], resolve: Submitted['resolve'], reject: Submitted['reject']) => {
    if (isClosed) throw new DomainError('store-unavailable', 'the store is closed')
    const text = textLength(changes)
    const isTooMuch =
      (pending > 0 && pending + changes.length > limits.queueRowsMax) ||
      (pendingText > 0 && pendingText + text > limits.queueTextMax)
    if (isTooMuch) throw new DomainError('store-busy', 'too many changes are pending')
    pending += changes.length
    pendingText += text
    queue.push({ changes, text, resolve, reject })
    // Requests of the same turn share a transaction too.
    schedule(1)
  }

  return {
    submit: change =>
      new Promise((resolve, reject) =>
        push([change], (affectedRows, from) => resolve(affectedRows[from] as number), reject),
      ),
    submitAll: changes =>
      new Promise((resolve, reject) => {
        const { length } = changes
        if (length === 0) resolve([])
        else push(changes, (affectedRows, from) => resolve(affectedRows.slice(from, from + length)), reject)
      }),
    pending: () => pending,
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

function textLength(changes: readonly Change[]): number {
  let length = 0
  for (const change of changes) for (const part of change) if (typeof part === 'string') length += part.length
  return length
}
