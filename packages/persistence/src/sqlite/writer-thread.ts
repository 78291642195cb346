import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import type { Change, Commit } from '../group-commit.ts'
import { closeOnError, detailedReasonOf, openWriterConnection } from './connection.ts'
import { prepareTransaction } from './transaction.ts'
import type { WriterAnswer, WriterCommand, WriterData } from './writer.ts'

// The thread that waits for the disk, for every thread that changes the store. Each has a port. Batches that have
// arrived when a transaction ends share the next one: the more arrive, the less a change costs.
//
// After a transaction that failed, SQLite has taken its changes back, but the log file may still hold them whole, and a
// crash would restore them. So the writer first commits a transaction of its own, which overwrites them. Until that
// works, there is an outage.

const recoverEveryMs = 1_000

const owner = parentPort as MessagePort
const { file, batchRowsMax, statements } = workerData as WriterData
const connection = openWriterConnection(file)
const runTransaction = closeOnError(connection, () => prepareTransaction(connection, statements))
// To read it also opens the log, while the store is where it was.
let userVersion = connection.pragma('user_version', { simple: true }) as bigint
const ports = new Set<MessagePort>()
let recovery: NodeJS.Timeout | undefined

owner.on('message', (command: WriterCommand) => {
  if (command === 'close') {
    connection.close()
    for (const port of ports) port.close()
    owner.close()
  } else {
    const port = command.connect
    ports.add(port)
    port.on('message', (batch: readonly Change[]) => runTogether(port, batch))
    port.on('close', () => ports.delete(port))
  }
})

// `startWriter` waits for it.
owner.postMessage('open')

function runTogether(first: MessagePort, batch: readonly Change[]): void {
  const batches = new Map([[first, [...batch]]])
  let changes = batch.length
  for (const port of ports) {
    while (changes < batchRowsMax) {
      const next = receiveMessageOnPort(port)
      if (next === undefined) break
      const joined = batches.get(port) ?? []
      joined.push(...(next.message as readonly Change[]))
      batches.set(port, joined)
      changes += next.message.length
    }
  }

  try {
    const begun = performance.now()
    const affectedRows = runTransaction([...batches.values()].flat())
    let commit: Commit | undefined = { changes, ms: performance.now() - begun }
    for (const [port, { length }] of batches) {
      answer(port, { affectedRows: affectedRows.splice(0, length), ...(commit && { commit }) })
      commit = undefined
    }
  } catch (error) {
    const reason = detailedReasonOf(error)
    if (!isLockedOut(error) && !recover()) {
      for (const port of ports) answer(port, { outage: reason })
      recovery ??= setInterval(endOutage, recoverEveryMs).unref()
    }
    for (const [port, { length }] of batches) answer(port, { reason, changes: length })
  }
}

function answer(port: MessagePort, message: WriterAnswer): void {
  port.postMessage(message)
}

/** Another process held the lock all the time, so nothing was written. */
function isLockedOut(error: unknown): boolean {
  return `${(error as { code?: unknown }).code}`.startsWith('SQLITE_BUSY')
}

/** Commits a change of the one number that nobody reads. Returns whether that worked. */
function recover(): boolean {
  try {
    userVersion = (userVersion + 1n) % 2n ** 31n
    connection.pragma(`user_version = ${userVersion}`)
    return true
  } catch {
    return false
  }
}

function endOutage(): void {
  if (!recover()) return
  clearInterval(recovery)
  recovery = undefined
  for (const port of ports) answer(port, { outage: undefined })
}
