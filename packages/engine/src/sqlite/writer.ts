import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import type Database from 'better-sqlite3'
import type { Change, ChangeStatement } from '../statements/statement.ts'
import type { Commit } from '../storage.ts'
import { type ChangesInUse, createCheckpointer } from './checkpointer.ts'
import { detailedReasonOf, isBusy, prepareChange } from './connection.ts'
import { guardFiles } from './guard.ts'

export interface WriterOptions {
  /** A transaction with this many single changes takes no further group of them. */
  readonly transactionChangesMax: number
  /** Compiled by the thread that has loaded Kysely, so that the writer need not. */
  readonly changeStatements: ReadonlyMap<string, ChangeStatement>
}

/** Each thread sends each kind by a MessagePort of its own. Single changes overtake bulk ones, and wait for few of them. */
export type ChangeKind = 'single' | 'bulk'

/** Sent to a MessagePort, group by group in order of arrival. */
export type WriterAnswer =
  /** The affected rows of the next group. Only one MessagePort gets the commit. */
  | { readonly affectedRows: readonly number[]; readonly commit?: Commit }
  /** Why the transaction of the next group failed: either all its changes are stored or none. */
  | { readonly reason: string }
  /** To every MessagePort: why the writer cannot write, or `undefined` once it can again. */
  | { readonly blocked: string | undefined }

/** A transaction with this many bulk changes takes no further group of them: a page that many touch is written once. */
const bulkTransactionChangesMax = 8_000
/** For this time after a change of the kind `single`, a transaction takes only one bulk group: others may wait for it. */
const inUseMs = 1_000

const lookAtFilesEveryMs = 1_000
/** The greatest age of the last look at the files on which a commit relies. Looking after every transaction would cost 6 % of the creates. */
const filesSeenMaxAgeMs = 10
const checkpointEveryMs = 10

/**
 * Returns the only writer of a store. A group that arrives from a thread (`connect`) begins a transaction (`write`), which
 * takes all other groups that have arrived (`createCollector`): the more there are, the less a change costs. COMMIT
 * returns after the fsync, and every thread gets the affected rows of its group.
 *
 * After a failed transaction SQLite has rolled back its changes, but the WAL may still hold all of them, and a
 * crash would restore them. So the writer first commits a transaction of its own, which overwrites them. Until that
 * succeeds, the writer is blocked: every thread refuses changes at once.
 *
 * SQLite goes on writing to files that were removed or cut (`guardFiles`). So a transaction begins and succeeds only if the
 * files were seen in order then, or a few milliseconds before.
 */
export function createWriter(
  connection: Database.Database,
  { transactionChangesMax, changeStatements }: WriterOptions,
) {
  const prepared = new Map(
    [...changeStatements].map(([name, statement]) => [name, prepareChange(connection, statement)]),
  )
  // The threads that send its name have the same statements.
  const run = ([name, ...values]: Change) =>
    (prepared.get(name) as ReturnType<typeof prepareChange>)(...values)
  // Reading it also opens the WAL, while the store is still in its place.
  let userVersion = connection.pragma('user_version', { simple: true }) as bigint
  const guard = guardFiles(connection)
  const checkpointer = createCheckpointer(
    connection,
    () => checkpoint(),
    reason => {
      guard.keepWal(reason)
      filesSeenMs = Number.NEGATIVE_INFINITY
    },
  )
  let filesSeenMs = performance.now()
  let checkpointMs = filesSeenMs
  const senders = new Map<MessagePort, ChangeKind>()
  const collect = createCollector(senders, transactionChangesMax)
  let inUse: ChangesInUse = { single: false, bulk: false }
  let blocked: string | undefined

  // Immediate: a transaction that begins with a read may be refused its first write without waiting for the lock.
  const runTransaction = connection.transaction(({ next }: Collected) => {
    const affectedRows: number[][] = []
    for (let group = next(); group !== undefined; group = next()) affectedRows.push(group.map(run))
    return affectedRows
  }).immediate

  const answer = (sender: MessagePort, message: WriterAnswer) => sender.postMessage(message)

  /** Commits a group, and all that are collected with it, in one transaction. */
  const write = (sender: MessagePort, group: readonly Change[]) => {
    const collected = collect(sender, group)
    const { collectedFrom } = collected
    inUse = collected.inUse
    try {
      if (blocked !== undefined) throw new Error(blocked)
      checkFiles()
      const begun = performance.now()
      const affectedRows = runTransaction(collected)
      const ms = performance.now() - begun
      checkFiles()
      const changes = affectedRows.reduce((count, rows) => count + rows.length, 0)
      for (const [index, sender] of collectedFrom.entries()) {
        const report = index === 0 && { commit: { changes, ms } }
        answer(sender, { affectedRows: affectedRows[index] as number[], ...report })
      }
    } catch (error) {
      const reason = detailedReasonOf(error)
      if (blocked === undefined && !isBusy(error) && !recover()) setBlocked(reason)
      for (const sender of collectedFrom) answer(sender, { reason })
    }
    // Only now: no answer waits for it.
    if (blocked === undefined && performance.now() - checkpointMs > checkpointEveryMs) checkpoint()
  }

  /** @throws Error if something is wrong with the files */
  const checkFiles = (maxAgeMs = filesSeenMaxAgeMs) => {
    if (performance.now() - filesSeenMs <= maxAgeMs) return
    const fault = guard.findFault()
    if (fault !== undefined) throw new Error(fault.reason)
    filesSeenMs = performance.now()
  }
  /** Copies the WAL if it is long, and blocks the writer if it stays too long. */
  const checkpoint = () => {
    const reason = checkpointer.copy(inUse)
    checkpointMs = performance.now()
    if (reason !== undefined) setBlocked(reason)
  }

  /** Commits a change of `user_version`, which nothing reads, to overwrite the WAL. Returns whether that worked. */
  const recover = () => {
    try {
      checkFiles(0)
      if (checkpointer.copy(inUse) !== undefined) return false
      userVersion = (userVersion + 1n) % 2n ** 31n
      connection.pragma(`user_version = ${userVersion}`)
      checkFiles(0)
      return true
    } catch {
      return false
    }
  }

  const setBlocked = (reason: string | undefined) => {
    blocked = reason
    for (const sender of senders.keys()) answer(sender, { blocked })
  }

  const looking = setInterval(() => {
    try {
      checkFiles(0)
      if (blocked === undefined) checkpoint()
      else if (recover()) setBlocked(undefined)
    } catch (error) {
      setBlocked(detailedReasonOf(error))
    }
  }, lookAtFilesEveryMs).unref()

  return {
    /** Takes groups of changes from a MessagePort, and answers there. */
    connect(sender: MessagePort, kind: ChangeKind) {
      senders.set(sender, kind)
      sender.on('message', (changes: readonly Change[]) => write(sender, changes))
      sender.on('close', () => senders.delete(sender))
    },
    /** Closes the connection and all MessagePorts. */
    async close() {
      clearInterval(looking)
      for (const sender of senders.keys()) sender.close()
      await checkpointer.stop()
      guard.close()
      checkpointer.closeFile()
    },
  }
}

/** The groups of one transaction. */
export interface Collected {
  /** Returns the next group, which may have arrived meanwhile. */
  next(): readonly Change[] | undefined
  /** The senders of the groups collected so far, in the same order. */
  readonly collectedFrom: readonly MessagePort[]
  /** Of which kinds there were changes within the last second. */
  readonly inUse: ChangesInUse
}

/**
 * Returns a function that collects the groups of one transaction: the first one, those that wait at the senders, and
 * those that arrive while its statements run. What arrives during COMMIT waits for the next transaction. If A and B wait,
 * both are taken at once, and `next` returns A, then B, then C if it arrived meanwhile. `collectedFrom` is their senders.
 *
 * @param transactionChangesMax a transaction with this many single changes takes no further group of them
 */
export function createCollector(
  senders: ReadonlyMap<MessagePort, ChangeKind>,
  transactionChangesMax: number,
): (sender: MessagePort, changes: readonly Change[]) => Collected {
  const lastMs = { single: Number.NEGATIVE_INFINITY, bulk: Number.NEGATIVE_INFINITY }
  const isInUse = (kind: ChangeKind) => performance.now() - lastMs[kind] <= inUseMs

  return (first, changes) => {
    const collectedFrom: MessagePort[] = []
    const waiting: (readonly Change[])[] = []
    const counts = { single: 0, bulk: 0 }
    const take = (sender: MessagePort, changes: readonly Change[]) => {
      const kind = senders.get(sender) as ChangeKind
      counts[kind] += changes.length
      lastMs[kind] = performance.now()
      collectedFrom.push(sender)
      waiting.push(changes)
      return true
    }
    const takeFrom = (wanted: ChangeKind) => {
      for (const [sender, kind] of senders) {
        const received = kind === wanted ? receiveMessageOnPort(sender) : undefined
        if (received !== undefined) return take(sender, received.message)
      }
      return false
    }
    const takeArrived = () =>
      (counts.single < transactionChangesMax && takeFrom('single')) ||
      ((counts.bulk === 0 || (counts.bulk < bulkTransactionChangesMax && !isInUse('single'))) &&
        takeFrom('bulk'))

    // Taken now: if the transaction cannot begin, all that waited for it share that outcome too.
    take(first, changes)
    while (takeArrived()) {}
    return {
      collectedFrom,
      inUse: { single: isInUse('single'), bulk: isInUse('bulk') },
      next() {
        if (waiting.length === 0) takeArrived()
        return waiting.shift()
      },
    }
  }
}
