import { statSync } from 'node:fs'
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import type { Change, Commit } from '../group-commit.ts'
import { createCollector } from './collector.ts'
import {
  checkpointAfter,
  checkpointPages,
  closeOnError,
  detailedReasonOf,
  isBusy,
  openWriterConnection,
} from './connection.ts'
import { prepareTransaction } from './transaction.ts'
import type { WriterAnswer, WriterCommand, WriterData, WriterLane } from './writer.ts'

// The only thread that writes to the store, and waits for the disk. Every thread with changes has two MessagePorts to
// it, one for each lane. Batches of all of them share a transaction: the more arrive, the less a change costs.
//
// After a failed transaction SQLite has rolled back its changes, but the log file may still hold all of them, and a
// crash would restore them. So the writer first commits a transaction of its own, which overwrites them. Until that
// succeeds, the store is in outage.
//
// SQLite goes on writing to a file that was removed, where everything is lost. So a transaction succeeds only if the
// files were seen in their place after it, or a few milliseconds before.

const lookAtFilesEveryMs = 1_000
/** The same while there are changes. Looking after every transaction would cost 6 % of the creates. */
const filesSeenMaxAgeMs = 10

const owner = parentPort as MessagePort
const { file, lockTimeoutMs, batchRowsMax, statements } = workerData as WriterData
const connection = openWriterConnection(file)
connection.pragma(`busy_timeout = ${lockTimeoutMs}`)
const runTransaction = closeOnError(connection, () => prepareTransaction(connection, statements))
// Reading it also opens the log, while the store is still in its place.
let userVersion = connection.pragma('user_version', { simple: true }) as bigint
const paths = [file, `${file}-wal`]
const openedFiles = paths.map(identify)
let filesSeenMs = performance.now()
const ports = new Map<MessagePort, WriterLane>()
const collect = createCollector(ports, batchRowsMax)
let wasShared = false
let isInOutage = false

setInterval(() => {
  if (!areFilesInPlace()) beginOutage(displaced)
  else if (isInOutage && recover()) endOutage()
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

/** Runs a batch, and all that are collected with it, in one transaction. */
function runTogether(first: MessagePort, batch: readonly Change[]): void {
  const { batches, taken, isShared } = collect(first, batch)
  if (isShared !== wasShared) {
    wasShared = isShared
    checkpointAfter(connection, isShared ? checkpointPages.shared : checkpointPages.alone)
  }
  try {
    const begun = performance.now()
    const affectedRows = runTransaction(batches)
    const now = performance.now()
    if (now - filesSeenMs > filesSeenMaxAgeMs && !areFilesInPlace()) throw new Error(displaced)
    let commit: Commit | undefined = {
      changes: taken.reduce((sum, { changes }) => sum + changes, 0),
      ms: now - begun,
    }
    for (const [index, { port }] of taken.entries()) {
      answer(port, { affectedRows: affectedRows[index] as number[], ...(commit && { commit }) })
      commit = undefined
    }
  } catch (error) {
    const reason = detailedReasonOf(error)
    if (!isBusy(error) && !recover()) {
      beginOutage(reason)
    }
    for (const { port, changes } of taken) answer(port, { reason, changes })
  }
}

function answer(port: MessagePort, message: WriterAnswer): void {
  port.postMessage(message)
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
  isInOutage = true
  for (const port of ports.keys()) answer(port, { outage: reason })
}

function endOutage(): void {
  isInOutage = false
  for (const port of ports.keys()) answer(port, { outage: undefined })
}
