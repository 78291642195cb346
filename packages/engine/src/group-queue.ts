import { StoreError, unavailable } from './errors.ts'
import type { Change } from './statements/statement.ts'

export interface GroupQueueOptions<Item = Change, Outcome = number> {
  /**
   * Makes the changes of a group in order, in one transaction, which other groups may share. Resolves to the affected rows
   * of each once they are durable. If it rejects, all are stored or none, except that SQLite takes several transactions for
   * more than 16 MiB: then the first ones may be stored without the others. Calls take effect in order.
   */
  readonly runGroup: (group: readonly Item[]) => Promise<readonly Outcome[]>
  /** Groups under way, without an outcome. At the limit, new changes wait and share the next group. Infinite on SQLite. */
  readonly groupsMax: number
  /** Pending changes. Beyond it, `store-busy`. One submission may have more. */
  readonly queueChangesMax?: number | undefined
  /** The text of all pending changes in UTF-16 code units. One submission may have more. */
  readonly queueTextCharsMax?: number
  /** Changes of a group, unless more were submitted together. */
  readonly groupChangesMax?: number
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
 * share transactions too. The outcome of a read is its rows.
 */
export function createGroupQueue<
  Item extends readonly unknown[] = Change,
  Outcome = number,
>({
  runGroup,
  groupsMax,
  queueChangesMax = 10_000,
  queueTextCharsMax = 8 * 1024 * 1024,
  groupChangesMax = 1_000,
}: GroupQueueOptions<Item, Outcome>) {
  const queue: Submitted<Item, Outcome>[] = []
  const underWay = new Set<Promise<void>>()
  let pendingChanges = 0
  let pendingTextChars = 0
  let isScheduled = false
  let isClosed = false

  const schedule = (turns: number) => {
    if (isScheduled) {
      return
    }
    isScheduled = true
    afterTurns(turns, runQueue)
  }

  const runQueue = () => {
    isScheduled = false
    while (queue.length > 0 && underWay.size < groupsMax) {
      const running = runNext().finally(() => {
        underWay.delete(running)
        if (isClosed) {
          runQueue()
        } else if (queue.length > 0) {
          schedule(turnsAfterGroup)
        }
      })
      underWay.add(running)
    }
  }

  /** Takes the submissions of the next group from the queue, and its changes. */
  const takeNext = () => {
    const group: Item[] = []
    let count = 0
    for (const { changes } of queue) {
      if (count > 0 && group.length + changes.length > groupChangesMax) {
        break
      }
      for (const change of changes) {
        group.push(change)
      }
      count++
    }
    return { submitted: queue.splice(0, count), group }
  }

  const runNext = async () => {
    const { submitted, group } = takeNext()
    let outcomes: readonly Outcome[] | undefined
    let error: unknown
    try {
      outcomes = await runGroup(group)
    } catch (thrown) {
      error = thrown
    }
    let from = 0
    for (const { changes, textChars, resolve, reject } of submitted) {
      pendingChanges -= changes.length
      pendingTextChars -= textChars
      if (outcomes === undefined) {
        reject(error)
      } else {
        resolve(outcomes.slice(from, from + changes.length))
      }
      from += changes.length
    }
  }

  return {
    /** Makes changes of one group, as `runGroup` does. Rejects with `store-busy`, `store-unavailable`. */
    submit(changes: readonly Item[]): Promise<readonly Outcome[]> {
      if (isClosed) {
        return Promise.reject(unavailable('the store is closed'))
      }
      const textChars = textCharsOf(changes)
      const isTooMuch =
        (pendingChanges > 0 && pendingChanges + changes.length > queueChangesMax) ||
        (pendingTextChars > 0 && pendingTextChars + textChars > queueTextCharsMax)
      if (isTooMuch) {
        return Promise.reject(
          new StoreError('store-busy', 'too many changes are pending'),
        )
      }
      pendingChanges += changes.length
      pendingTextChars += textChars
      return new Promise((resolve, reject) => {
        queue.push({ changes, textChars, resolve, reject })
        // Requests of the same turn share a transaction too.
        schedule(1)
      })
    },
    pending: () => pendingChanges,
    /** Refuses further changes, and resolves once all others have an outcome. */
    async drain() {
      isClosed = true
      runQueue()
      while (underWay.size > 0) {
        await Promise.all(underWay)
      }
    },
  }
}

/** Calls back after this many turns of the event loop, at least 1. */
function afterTurns(turns: number, act: () => void): void {
  setImmediate(() => (turns > 1 ? afterTurns(turns - 1, act) : act()))
}

function textCharsOf(changes: readonly (readonly unknown[])[]): number {
  let length = 0
  for (const change of changes) {
    for (const part of change) {
      if (typeof part === 'string') {
        length += part.length
      }
    }
  }
  return length
}
