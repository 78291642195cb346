import type { MessagePort } from 'node:worker_threads'
import type Database from 'better-sqlite3'
import type { Change, ChangeStatement } from '../statements/statement.ts'
import type { Commit } from '../storage.ts'
import { type ChangeKind, createArrivals, type Group } from './arrivals.ts'
import { createCheckpointer } from './checkpointer.ts'
import {
  detailedReasonOf,
  isBusy,
  type PreparedChange,
  prepareChange,
  sleep,
} from './connection.ts'
import { FileGuard } from './guard.ts'

/** Sent to a MessagePort, group by group in order of arrival. */
export type WriterAnswer =
  /** The affected rows of the next group. Only one MessagePort gets the commit. */
  | { readonly affectedRows: readonly number[]; readonly commit?: Commit }
  /** A commit that completes no group. */
  | { readonly commit: Commit }
  /** Why the transaction of the next group failed. What earlier transactions have made of this group is stored. */
  | { readonly reason: string }
  /** To every MessagePort: why the writer cannot write, or `undefined` once it can again. */
  | { readonly blockedBecause: string | undefined }
  /** To one MessagePort: why the WAL cannot be copied, or `undefined` once it can again. */
  | { readonly checkpointFailure: string | undefined }

/** A transaction that has written as much takes no further group, which may write as much: 16 MiB, 4,500 pages of the WAL. */
const transactionBytesMax = 16 * 1024 * 1024
/** Of a row and its entries of indexes, besides its texts. */
const rowBytes = 192
/** The pause between two transactions of one group. Another process tries every 100 ms, so it gets the lock after a few pauses. */
const turnMs = 30
/** Between two looks at files or WAL under load. Looking at each commit costs 6 % of the creates. */
const lookEveryMs = 10
/** The same without a load, and between two attempts to recover. */
const idleLookEveryMs = 1_000

/**
 * Returns the only writer of a store.
 *
 * A group that arrives from a thread begins a transaction, which takes all others that have arrived (`arrivals.ts`): the
 * more there are, the less a change costs. Its steps, and who waits for each:
 *
 * | step | who waits |
 * | --- | --- |
 * | look at the files (`guard.ts`), unless seen within `lookEveryMs` | the groups |
 * | BEGIN IMMEDIATE, the changes up to twice `transactionBytesMax`, COMMIT with its fsync | the groups |
 * | look at the files again, unless seen within `lookEveryMs` | the groups |
 * | answer the groups that are complete | |
 * | copy the WAL if it is long (`checkpointer.ts`) | the next transaction, never an answer |
 *
 * A group that alone writes more than `transactionBytesMax` is continued in the next transaction, after single changes
 * that arrive meanwhile, and `turnMs` later. Rows of the statement before a change count as written.
 *
 * | state | changes | ends |
 * | --- | --- | --- |
 * | open | are made | when a transaction fails and cannot be overwritten, a file is not as it was, or the WAL is too long |
 * | blocked | every thread refuses them at once | when `recover` succeeds, which is tried each second |
 *
 * After a failed transaction SQLite has rolled back its changes, but the WAL may still hold all of them, and a crash would
 * restore them. So `recover` commits a small transaction, which overwrites them. A lock of another process is no failure.
 * If only the look after COMMIT fails, its changes get the same 503 (error 50302), and may be stored.
 *
 * An error of the disk in `checkpoint` right after a commit ends the thread, and the process logs it and ends. One in the look
 * of each second blocks the writer.
 *
 * Must never happen: an answer before the fsync, of a change that a crash takes back, or on files that were removed, cut or
 * overwritten more than `lookEveryMs` before. A crash that restores a failed transaction once the writer is open again.
 */
export function createWriter(
  connection: Database.Database,
  changeStatements: ReadonlyMap<string, ChangeStatement>,
) {
  const prepared = new Map(
    [...changeStatements].map(([name, statement]) => [
      name,
      prepareChange(connection, statement),
    ]),
  )
  // Reading it also opens the WAL, while the store is still in its place.
  let userVersion = connection.pragma('user_version', { simple: true }) as bigint
  const guard = new FileGuard(connection)
  let filesSeenMs = performance.now()
  let checkpointMs = filesSeenMs
  const senders = new Map<MessagePort, ChangeKind>()
  const arrivals = createArrivals(senders)
  let blockedBecause: string | undefined

  /** Commits a group, and all that arrive meanwhile. */
  const commitAllWaiting = (sender: MessagePort, changes: readonly Change[]) => {
    let waiting = [arrivals.toGroup(sender, changes)]
    while (waiting.length > 0) {
      waiting = commitOnce(waiting)
      if (
        blockedBecause === undefined &&
        performance.now() - checkpointMs > lookEveryMs
      ) {
        checkpoint()
      }
      const [next] = waiting
      if (next !== undefined && next.affectedRows.length > 0) {
        sleep(turnMs)
      }
    }
  }

  /** Commits groups and what arrives meanwhile in one transaction, and answers those that are complete. Returns the others. */
  const commitOnce = (waiting: readonly Group[]): Group[] => {
    const groups = arrivals.begin(waiting)
    try {
      if (blockedBecause !== undefined) {
        throw new Error(blockedBecause)
      }
      checkFiles()
      const begun = performance.now()
      const count = runTransaction(groups)
      const commit = { changes: count, ms: performance.now() - begun }
      checkFiles()
      const isComplete = ({ changes, affectedRows }: Group) =>
        affectedRows.length === changes.length
      const end = groups.findIndex(group => !isComplete(group))
      const complete = end === -1 ? groups : groups.slice(0, end)
      // There is at least the group that began it.
      if (complete.length === 0) {
        post((groups[0] as Group).sender, { commit })
      }
      for (const [index, { sender, affectedRows }] of complete.entries()) {
        post(sender, index === 0 ? { affectedRows, commit } : { affectedRows })
      }
      return groups.slice(complete.length)
    } catch (error) {
      const reason = detailedReasonOf(error)
      if (blockedBecause === undefined && !isBusy(error) && !recover()) {
        setBlocked(reason)
      }
      for (const { sender } of groups) {
        post(sender, { reason })
      }
      return []
    }
  }

  /**
   * Makes the changes of these groups, and adds groups that arrive meanwhile. Returns the number of changes. Immediate: a
   * transaction that begins with a read may be refused its first write without waiting for the lock.
   */
  const runTransaction = connection.transaction((groups: Group[]) => {
    let count = 0
    let bytes = 0
    for (let at = 0; bytes < transactionBytesMax; at++) {
      if (at === groups.length && !arrivals.addNext(groups)) {
        break
      }
      const { changes, affectedRows } = groups[at] as Group
      const bytesMax = bytes + transactionBytesMax
      while (affectedRows.length < changes.length && bytes < bytesMax) {
        bytes += makeChange(changes[affectedRows.length] as Change, affectedRows)
        count++
      }
    }
    return count
  }).immediate

  /** Makes a change, and adds its affected rows. Returns about how many bytes it has written. */
  const makeChange = ([name, ...values]: Change, affectedRows: number[]) => {
    // The threads that send its name have the same statements.
    const run = prepared.get(name) as PreparedChange
    const { rows, rowsBefore } = run(values)
    affectedRows.push(rows)
    let bytes = rowBytes
    for (const value of values) {
      if (typeof value === 'string') {
        bytes += Buffer.byteLength(value)
      }
    }
    return (rows + rowsBefore) * bytes
  }

  const post = (sender: MessagePort, answer: WriterAnswer) => sender.postMessage(answer)

  /** @throws Error if something is wrong with the files */
  const checkFiles = (maxAgeMs = lookEveryMs) => {
    if (performance.now() - filesSeenMs <= maxAgeMs) {
      return
    }
    const fault = guard.findFault()
    if (fault !== undefined) {
      throw new Error(fault.reason)
    }
    filesSeenMs = performance.now()
  }

  const checkpointer = createCheckpointer({
    connection,
    descriptor: guard.descriptor,
    onPass: () => checkpoint(),
    onFailureChange(reason) {
      const [oneSender] = senders.keys()
      if (oneSender !== undefined) {
        post(oneSender, { checkpointFailure: reason })
      }
    },
    onLoss(reason) {
      guard.noteLostPages(reason)
      filesSeenMs = Number.NEGATIVE_INFINITY
    },
  })
  /** Copies the WAL if it is long, and blocks the writer if it stays too long. */
  const checkpoint = () => {
    const reason = checkpointer.copyIfLong(arrivals.recent())
    checkpointMs = performance.now()
    if (reason !== undefined) {
      setBlocked(reason)
    }
  }

  /** Commits a change of `user_version`, whose value means nothing, to overwrite the WAL. Returns whether that worked. */
  const recover = () => {
    try {
      checkFiles(0)
      if (checkpointer.copyIfLong(arrivals.recent()) !== undefined) {
        return false
      }
      userVersion = (userVersion + 1n) % 2n ** 31n
      connection.pragma(`user_version = ${userVersion}`)
      checkFiles(0)
      return true
    } catch {
      return false
    }
  }

  const setBlocked = (reason: string | undefined) => {
    blockedBecause = reason
    for (const sender of senders.keys()) {
      post(sender, { blockedBecause })
    }
  }

  const timer = setInterval(() => {
    try {
      checkFiles(0)
      if (blockedBecause === undefined) {
        checkpoint()
      } else if (recover()) {
        setBlocked(undefined)
      }
    } catch (error) {
      setBlocked(detailedReasonOf(error))
    }
  }, idleLookEveryMs).unref()

  return {
    /** Takes groups of changes from a MessagePort, and answers there. */
    connect(sender: MessagePort, kind: ChangeKind) {
      senders.set(sender, kind)
      sender.on('message', (changes: readonly Change[]) =>
        commitAllWaiting(sender, changes),
      )
      sender.on('close', () => senders.delete(sender))
    },
    /** Closes the connection and all MessagePorts. */
    async close() {
      clearInterval(timer)
      for (const sender of senders.keys()) {
        sender.close()
      }
      await checkpointer.stop()
      guard.close()
    },
  }
}
