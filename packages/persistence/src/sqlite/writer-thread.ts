import { statSync } from 'node:fs'
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import type { Change, Commit } from '../group-commit.ts'
import { closeOnError, detailedReasonOf, openWriterConnection } from './connection.ts'
import { prepareTransaction } from './transaction.ts'
import type { WriterAnswer, WriterCommand, WriterData, WriterLane } from './writer.ts'

// The only thread that writes to the store, and waits for the disk. Every thread with changes has a port to
// it. Batches that arrive during a transaction share the next one, so a change costs less the more of them
// arrive.
// After a failed transaction SQLite has rolled back its changes, but the log file may still hold them
// completely, and a crash would restore them. So the writer first commits a transaction of its own, which
// overwrites them. Until that succeeds, the store is in outage.
//
// SQLite goes on writing to a file that was removed, where everything is lost. So a transaction succeeds only if the
// files were seen in their place after it, or a few milliseconds before.

const recoverEveryMs = 1_000
const lookAtFilesEveryMs = 1_000
/** The same while there are changes. Looking after every transaction would cost 6 % of the creates. */
const filesSeenMaxAgeMs = 10

/** Bulk changes in a transaction, for which a single change may wait. */
const bulkRowsMax = 500
/** The same without single changes: a page that many bulk changes touch is then written once. */
const quietBulkRowsMax = 8_000
const quietAfterMs = 1_000

const owner = parentPort as MessagePort
const { file, batchRowsMax, statements } = workerData as WriterData
const connection = openWriterConnection(file)
const runTransaction = closeOnError(connection, () => prepareTransaction(connection, statements))
// Reading it also opens the log, while the store is still in its place.
let userVersion = connection.pragma('user_version', { simple: true }) as bigint
const paths = [file, `${file}-wal`]
const openedFiles = paths.map(identify)
let filesSeenMs = performance.now()
const ports = new Map<MessagePort, WriterLane>()
let lastSingleMs = Number.NEGATIVE_INFINITY
let recovery: NodeJS.Timeout | undefined

setInterval(() => {
  if (recovery === undefined && !areFilesInPlace()) beginOutage(displaced)
}, lookAtFilesEveryMs).unref()

owner.on('message', (command: WriterCommand) => {
  if (command === 'close') {
    connection.close()
    for (const port of ports.keys()) port.close()
    owner.close()
  } else {
    const { connect: port, lane } = command
    ports.set(port, lane)
    port.on('message', (batch: readonly Change[]) => runTogether(port, batch))
    port.on('close', () => ports.delete(port))
  }
})

// `startWriter` waits for this message.
owner.postMessage('open')

/** Runs a batch, and all that arrive before it has ended, in one transaction. */
function runTogether(first: MessagePort, batch: readonly Change[]): void {
  const taken: { readonly port: MessagePort; readonly changes: number }[] = []
  const rows = { single: 0, bulk: 0 }
  const take = (port: MessagePort, changes: readonly Change[]) => {
    const lane = ports.get(port) as WriterLane
    rows[lane] += changes.length
    if (lane === 'single') lastSingleMs = performance.now()
    taken.push({ port, changes: changes.length })
    return changes
  }
  const nextOf = (wanted: WriterLane) => {
    for (const [port, lane] of ports) {
      const received = lane === wanted ? receiveMessageOnPort(port) : undefined
      if (received !== undefined) return take(port, received.message)
    }
    return undefined
  }
  function* arrived(): Generator<readonly Change[]> {
    for (let next: readonly Change[] | undefined; ; yield next) {
      const bulkMax = performance.now() - lastSingleMs > quietAfterMs ? quietBulkRowsMax : bulkRowsMax
      next = rows.single < batchRowsMax ? nextOf('single') : undefined
      if (rows.bulk < bulkMax) next ??= nextOf('bulk')
      if (next === undefined) return
    }
  }

  // If the transaction cannot begin, all that waited for it share that outcome too.
  const before = [take(first, batch), ...arrived()]
  function* all() {
    yield* before
    yield* arrived()
  }
  try {
    const begun = performance.now()
    const affectedRows = runTransaction(all())
    const now = performance.now()
    if (now - filesSeenMs > filesSeenMaxAgeMs && !areFilesInPlace()) throw new Error(displaced)
    const ms = now - begun
    let commit: Commit | undefined = { changes: rows.single + rows.bulk, ms }
    for (const [index, { port }] of taken.entries()) {
      answer(port, { affectedRows: affectedRows[index] as number[], ...(commit && { commit }) })
      commit = undefined
    }
  } catch (error) {
    const reason = detailedReasonOf(error)
    if (!isLockedOut(error) && !recover()) {
      beginOutage(reason)
    }
    for (const { port, changes } of taken) answer(port, { reason, changes })
  }
}

function answer(port: MessagePort, message: WriterAnswer): void {
  port.postMessage(message)
}

/** Returns whether another process held the lock throughout, so that nothing was written. */
function isLockedOut(error: unknown): boolean {
  return `${(error as { code?: unknown }).code}`.startsWith('SQLITE_BUSY')
}

const displaced = 'its file was removed, moved or replaced: put it back, or stop the server'

function areFilesInPlace(): boolean {
  const areInPlace = paths.every((path, index) => identify(path) === openedFiles[index])
  if (areInPlace) filesSeenMs = performance.now()
  return areInPlace
}

function identify(path: string): string | undefined {
  try {
    const { dev, ino } = statSync(path, { bigint: true })
    return `${dev}:${ino}`
  } catch {
    return undefined
  }
}

/** Commits a change of the one number that nothing else reads. Returns whether that worked. */
function recover(): boolean {
  try {
    userVersion = (userVersion + 1n) % 2n ** 31n
    connection.pragma(`user_version = ${userVersion}`)
    return areFilesInPlace()
  } catch {
    return false
  }
}

function beginOutage(reason: string): void {
  for (const port of ports.keys()) answer(port, { outage: reason })
  recovery ??= setInterval(endOutage, recoverEveryMs).unref()
}

function endOutage(): void {
  if (!recover()) return
  clearInterval(recovery)
  recovery = undefined
  for (const port of ports.keys()) answer(port, { outage: undefined })
}
