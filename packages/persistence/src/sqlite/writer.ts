import { statSync } from 'node:fs'
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import type Database from 'better-sqlite3'
import type { Commit } from '../commit/group-commit.ts'
import type { Change, Statements } from '../repositories/statements.ts'
import {
  checkpointAfter,
  checkpointPages,
  detailedReasonOf,
  isBusy,
  mergeWal,
  prepareAll,
} from './connection.ts'

export interface WriterOptions {
  /** A transaction with this many single changes takes no further batch of them. */
  readonly transactionRowsMax: number
  /** Compiled by the thread that has loaded Kysely, so that the writer need not. */
  readonly statements: Statements['change']
}

/** The two queues of a thread to the writer. Single changes overtake bulk ones, and wait for few of them. */
export type WriterQueue = 'single' | 'bulk'

/** Sent to a MessagePort, batch by batch in order of arrival. */
export type WriterAnswer =
  /** The affected rows of the next batch. Only one MessagePort gets the commit. */
  | { readonly affectedRows: readonly number[]; readonly commit?: Commit }
  /** Why the transaction of the next batch failed: all its changes are stored, or none. */
  | { readonly reason: string }
  /** To every MessagePort: why the writer cannot write, or `undefined` once it can again. */
  | { readonly outage: string | undefined }

export interface Writer {
  /** Takes batches of changes from a MessagePort, and answers there. */
  connect(port: MessagePort, queue: WriterQueue): void
  /** Closes the connection and all MessagePorts. */
  close(): void
}

/** A transaction with this many bulk changes takes no further batch of them: a page that many touch is written once. */
const bulkTransactionRowsMax = 8_000
/** After a single change, transactions take only one bulk batch each for this time: others may wait for them. */
const inUseMs = 1_000

const lookAtFilesEveryMs = 1_000
/** The same while there are changes. Looking after every transaction would cost 6 % of the creates. */
const filesSeenMaxAgeMs = 10

const displaced = 'its file was removed, moved or replaced: put it back, or stop the server'

/**
 * Returns the only writer of a store. Batches from all MessagePorts share a transaction: the more arrive, the less a
 * change costs.
 *
 * After a failed transaction SQLite has rolled back its changes, but the log file may still hold all of them, and a
 * crash would restore them. So the writer first commits a transaction of its own, which overwrites them. Until that
 * succeeds, the store is in outage.
 *
 * SQLite goes on writing to a file that was removed, where everything is lost. So a transaction succeeds only if the
 * files were seen in their place after it, or a few milliseconds before.
 */
export function createWriter(
  connection: Database.Database,
  { transactionRowsMax, statements }: WriterOptions,
): Writer {
  const prepared = prepareAll(connection, statements)
  // Reading it also opens the log, while the store is still in its place.
  let userVersion = connection.pragma('user_version', { simple: true }) as bigint
  const paths = [connection.name, `${connection.name}-wal`]
  const openedFiles = paths.map(identify)
  let filesSeenMs = performance.now()
  const ports = new Map<MessagePort, WriterQueue>()
  const collect = createCollector(ports, transactionRowsMax)
  let wasShared = false
  let isInOutage = false

  // Immediate: a transaction that begins with a read may be refused its first write without waiting for the lock.
  const runTransaction = connection.transaction(({ next }: Collected) => {
    const affectedRows: number[][] = []
    for (let batch = next(); batch !== undefined; batch = next())
      affectedRows.push(
        batch.map(([statement, ...parameters]) => prepared[statement].run(...parameters).changes),
      )
    return affectedRows
  }).immediate

  const answer = (port: MessagePort, message: WriterAnswer) => port.postMessage(message)

  /** Commits a batch, and all that are collected with it, in one transaction. */
  const write = (port: MessagePort, batch: readonly Change[]) => {
    const collected = collect(port, batch)
    const { taken, isShared } = collected
    if (isShared !== wasShared) {
      wasShared = isShared
      checkpointAfter(connection, isShared ? checkpointPages.shared : checkpointPages.alone)
    }
    try {
      const begun = performance.now()
      const affectedRows = runTransaction(collected)
      const now = performance.now()
      if (now - filesSeenMs > filesSeenMaxAgeMs && !areFilesInPlace()) throw new Error(displaced)
      const changes = affectedRows.reduce((count, rows) => count + rows.length, 0)
      for (const [index, port] of taken.entries()) {
        const report = index === 0 && { commit: { changes, ms: now - begun } }
        answer(port, { affectedRows: affectedRows[index] as number[], ...report })
      }
    } catch (error) {
      const reason = detailedReasonOf(error)
      if (!isBusy(error) && !recover()) setOutage(reason)
      for (const port of taken) answer(port, { reason })
    }
  }

  const areFilesInPlace = () => {
    const areInPlace = paths.every((path, index) => identify(path) === openedFiles[index])
    if (areInPlace) filesSeenMs = performance.now()
    return areInPlace
  }

  /** Commits a change of the one number that nothing else reads. Returns whether that worked. */
  const recover = () => {
    try {
      userVersion = (userVersion + 1n) % 2n ** 31n
      connection.pragma(`user_version = ${userVersion}`)
      return areFilesInPlace()
    } catch {
      return false
    }
  }

  const setOutage = (reason: string | undefined) => {
    isInOutage = reason !== undefined
    for (const port of ports.keys()) answer(port, { outage: reason })
  }

  const looking = setInterval(() => {
    if (!areFilesInPlace()) setOutage(displaced)
    else if (isInOutage && recover()) setOutage(undefined)
  }, lookAtFilesEveryMs).unref()

  return {
    connect(port, queue) {
      ports.set(port, queue)
      port.on('message', (changes: readonly Change[]) => write(port, changes))
      port.on('close', () => ports.delete(port))
    },
    close() {
      clearInterval(looking)
      mergeWal(connection)
      connection.close()
      for (const port of ports.keys()) port.close()
    },
  }
}

/** The batches of one transaction. */
export interface Collected {
  /** Returns the next batch, which may have arrived meanwhile. */
  next(): readonly Change[] | undefined
  /** Whose batches were taken so far, in the same order. */
  readonly taken: readonly MessagePort[]
  /** Whether there were single and bulk changes within the last second. */
  readonly isShared: boolean
}

/**
 * Returns a function that collects the batches of one transaction: the first one, those that wait in the ports, and
 * those that arrive while its statements run. What arrives during COMMIT waits for the next transaction.
 *
 * @param transactionRowsMax a transaction with this many single changes takes no further batch of them
 */
export function createCollector(
  ports: ReadonlyMap<MessagePort, WriterQueue>,
  transactionRowsMax: number,
): (port: MessagePort, changes: readonly Change[]) => Collected {
  const lastMs = { single: Number.NEGATIVE_INFINITY, bulk: Number.NEGATIVE_INFINITY }
  const isInUse = (queue: WriterQueue) => performance.now() - lastMs[queue] <= inUseMs

  return (first, changes) => {
    const taken: MessagePort[] = []
    const waiting: (readonly Change[])[] = []
    const rows = { single: 0, bulk: 0 }
    const take = (port: MessagePort, changes: readonly Change[]) => {
      const queue = ports.get(port) as WriterQueue
      rows[queue] += changes.length
      lastMs[queue] = performance.now()
      taken.push(port)
      waiting.push(changes)
      return true
    }
    const takeFrom = (wanted: WriterQueue) => {
      for (const [port, queue] of ports) {
        const received = queue === wanted ? receiveMessageOnPort(port) : undefined
        if (received !== undefined) return take(port, received.message)
      }
      return false
    }
    const takeArrived = () =>
      (rows.single < transactionRowsMax && takeFrom('single')) ||
      ((rows.bulk === 0 || (rows.bulk < bulkTransactionRowsMax && !isInUse('single'))) && takeFrom('bulk'))

    // Taken now: if the transaction cannot begin, all that waited for it share that outcome too.
    take(first, changes)
    while (takeArrived()) {}
    return {
      taken,
      isShared: isInUse('single') && isInUse('bulk'),
      next() {
        if (waiting.length === 0) takeArrived()
        return waiting.shift()
      },
    }
  }
}

function identify(path: string): string | undefined {
  try {
    const { dev, ino } = statSync(path, { bigint: true })
    return `${dev}:${ino}`
  } catch {
    return undefined
  }
}
