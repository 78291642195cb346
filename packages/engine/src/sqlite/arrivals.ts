import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import type { Change } from '../statements/statement.ts'
import type { RecentChanges } from './checkpointer.ts'

/** Each thread sends each kind by a MessagePort of its own. Single changes overtake bulk ones, and wait for few of them. */
export type ChangeKind = 'single' | 'bulk'

/** Changes that a thread has sent together. */
export interface Group {
  readonly sender: MessagePort
  readonly kind: ChangeKind
  readonly changes: readonly Change[]
  /** Of the changes that have been made, in their order. */
  readonly affectedRows: number[]
}

/** A transaction with this many single changes takes no further group of them. */
const transactionChangesMax = 1_000
/** The same for bulk changes, of which there are more: it writes a page once for all its changes. */
const bulkTransactionChangesMax = 8_000
/** For this time after a single change, a transaction takes only one bulk group, as other single changes may wait for it. */
const recentMs = 1_000

/**
 * Receives groups for one transaction after another: those that wait when it begins, and those that arrive while its
 * statements run. What arrives during COMMIT waits for the next one.
 */
export function createArrivals(senders: ReadonlyMap<MessagePort, ChangeKind>) {
  const lastMs = { single: Number.NEGATIVE_INFINITY, bulk: Number.NEGATIVE_INFINITY }
  const isRecent = (kind: ChangeKind) => performance.now() - lastMs[kind] <= recentMs
  /** The numbers of changes in the transaction. */
  const counts = { single: 0, bulk: 0 }

  const toGroup = (sender: MessagePort, changes: readonly Change[]): Group => {
    const kind = senders.get(sender) as ChangeKind
    lastMs[kind] = performance.now()
    return { sender, kind, changes, affectedRows: [] }
  }
  const add = (groups: Group[], group: Group) => {
    counts[group.kind] += group.changes.length
    groups.push(group)
  }
  const receive = (groups: Group[], wanted: ChangeKind) => {
    for (const [sender, kind] of senders) {
      const received = kind === wanted ? receiveMessageOnPort(sender) : undefined
      if (received === undefined) {
        continue
      }
      add(groups, toGroup(sender, received.message))
      return true
    }
    return false
  }
  const receiveSingle = (groups: Group[]) =>
    counts.single < transactionChangesMax && receive(groups, 'single')
  const receiveBulk = (groups: Group[]) =>
    (counts.bulk === 0 ||
      (counts.bulk < bulkTransactionChangesMax && !isRecent('single'))) &&
    receive(groups, 'bulk')
  /** Adds a group that has arrived meanwhile, if the transaction takes another one. Returns whether it did. */
  const addNext = (groups: Group[]): boolean =>
    receiveSingle(groups) || receiveBulk(groups)

  return {
    toGroup,
    /** Returns the groups with which a transaction begins: these, and what waits. If it cannot begin, all fail. */
    begin(waiting: readonly Group[]): Group[] {
      counts.single = 0
      counts.bulk = 0
      const groups: Group[] = []
      for (const group of waiting) {
        if (group.kind === 'single') {
          add(groups, group)
        }
      }
      while (receiveSingle(groups)) {}
      for (const group of waiting) {
        if (group.kind === 'bulk') {
          add(groups, group)
        }
      }
      while (addNext(groups)) {}
      return groups
    },
    addNext,
    recent: (): RecentChanges => ({ single: isRecent('single'), bulk: isRecent('bulk') }),
  }
}
