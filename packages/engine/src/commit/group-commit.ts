import { StoreError, unavailable } from '../errors.ts'
import type { Change } from '../statements/statement.ts'
import type { GroupCommitLimits } from '../storage.ts'

export const defaultGroupCommitLimits: GroupCommitLimits = {
  queueChangesMax: 10_000,
  queueTextCharsMax: 8 * 1024 * 1024,
  transactionChangesMax: 1_000,
}

export interface GroupCommitOptions<Item = Change, Outcome = number> {
  /**
   * Makes the changes of a group in order in one transaction, which other groups may share. Resolves to the affected
   * rows of each once they are durable. If it rejects, either all are stored or none. Calls take effect in order.
   */
  readonly runGroup: (group: readonly Item[]) => Promise<readonly Outcome[]>
  /** Groups under way, without an outcome. At the limit, new changes wait and share the next group. Infinite on SQLite. */
  readonly groupsMax: number
  readonly limits: GroupCommitLimits
}

interface Submitted<Item, Outcome> {
  readonly changes: readonly Item[]
  readonly textChars: number
  readonly resolve: (outcomes: readonly Outcome[]) => void
  readonly reject: (error: unknown) => void
}

/**
 * On PostgreSQL, turns of the event loop from the end of a group to the next one: clients with an answer can join it with
 * their next change.
 */
const turnsAfterGroup = 2

/**
 * Makes changes that arrive together, or while `groupsMax` groups are under way, share a transaction. PostgreSQL's reads
 * share transactions too. Their outcomes are rows.
 */
export function createGroupCommit<Item extends readonly unknown[] = Change, Outcome = number>({
  runGroup,
  groupsMax,
  limits,
}: GroupCommitOptions<Item, Outcome>) {
  const queue: Submitted<Item, Outcome>[] = []
  const underWay = new Set<Promise<void>>()
  let pendingChanges = 0
  let pendingTextChars = 0
  let isScheduled = false
  let isClosed = false

  const schedule = (turns: number) => {
    if (isScheduled) return
    isScheduled = true
    afterTurns(turns, runQueue)
  }

  const runQueue = () => {
    isScheduled = false
    while (queue.length > 0 && underWay.size < groupsMax) {
      const running = runNext().finally(() => {
        underWay.delete(running)
        if (isClosed) runQueue()
        else if (queue.length > 0) schedule(turnsAfterGroup)
      })
      underWay.add(running)
    }
  }

  const takeNext = () => {
    let count = 0
    const end = queue.findIndex(({ changes }, index) => {
      count += changes.length
      return index > 0 && count > limits.transactionChangesMax
    })
    return queue.splice(0, end === -1 ? queue.length : end)
  }

  const runNext = async () => {
    const submitted = takeNext()
    const [outcome] = await Promise.allSettled([runGroup(submitted.flatMap(({ changes }) => changes))])
    let from = 0
    for (const { changes, textChars, resolve, reject } of submitted) {
      pendingChanges -= changes.length
      pendingTextChars -= textChars
      if (outcome.status === 'fulfilled') resolve(outcome.value.slice(from, from + changes.length))
      else reject(outcome.reason)
      from += changes.length
    }
  }

  const push = (submitted: Submitted<Item, Outcome>) => {
    if (isClosed) throw unavailable('the store is closed')
    const { changes, textChars } = submitted
    const isTooMuch =
      (pendingChanges > 0 && pendingChanges + changes.length > limits.queueChangesMax) ||
      (pendingTextChars > 0 && pendingTextChars + textChars > limits.queueTextCharsMax)
    if (isTooMuch) throw new StoreError('store-busy', 'too many changes are pending')
    pendingChanges += changes.length
    pendingTextChars += textChars
    queue.push(submitted)
    // Requests of the same turn share a transaction too.
    schedule(1)
  }

  return {
    /** Makes changes in one transaction, as `runGroup` does. Rejects with `store-busy`, `store-unavailable`. */
    submit: (changes: readonly Item[]) =>
      new Promise<readonly Outcome[]>((resolve, reject) =>
        push({ changes, textChars: textCharsOf(changes), resolve, reject }),
      ),
    pending: () => pendingChanges,
    /** Refuses further changes, and resolves once all others have an outcome. */
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

function textCharsOf(changes: readonly (readonly unknown[])[]): number {
  let length = 0
  for (const change of changes) for (const part of change) if (typeof part === 'string') length += part.length
  return length
}
