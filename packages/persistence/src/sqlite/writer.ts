import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import type { Commit, Write } from '../commit-queue.ts'
import type { Statements } from '../statements.ts'
import { prepareCommit } from './commit.ts'
import { openWriter } from './connection.ts'
import { detailedReasonOf } from './reason.ts'

/**
 * The thread that waits for the disk, for every thread that writes to the store. Each has a port. Whatever has come in
 * at the ports by the time the last commit is done shares the next one, so that the more comes in, the less a change
 * costs.
 *
 * After a commit that failed, SQLite has taken its changes back, but the log file may still hold them whole, and
 * would bring them back to life should the process die now. So the writer first makes a commit of its own, which
 * overwrites them, and until that works it is not ready for others.
 */
export type WriterAnswer =
  /** For the next so many changes that came in at this port, in their order; one of the ports is told of the commit. */
  | { readonly changed: readonly number[]; readonly commit?: Commit }
  | { readonly failure: string; readonly rows: number }
  /** Whether the writer can write at all, told to every port when it changes. */
  | { readonly notReady: string | undefined }

export type WriterCommand = { readonly join: MessagePort } | 'close'

const recoverAfterMs = 1_000

const owner = parentPort
if (owner === null) throw new Error('writer.js runs as a worker thread')

export interface WriterData {
  readonly file: string
  readonly statements: Statements['write']
  /** A commit that has so many changes takes no further batch. */
  readonly batchRowsMax: number
}

const { file, statements, batchRowsMax } = workerData as WriterData
const connection = openWriter(file)
const commit = prepareCommit(connection, statements)
let proofs = connection.pragma('user_version', { simple: true }) as bigint
const ports = new Set<MessagePort>()
let recovery: NodeJS.Timeout | undefined

owner.on('message', (command: WriterCommand) => {
  if (command === 'close') {
    connection.close()
    for (const port of ports) port.close()
    owner.close()
  } else {
    const port = command.join
    ports.add(port)
    port.on('message', (writes: readonly Write[]) => commitTogether(port, writes))
    port.on('close', () => ports.delete(port))
  }
})

// Its owner waits for this, or for what kept the store from being opened.
owner.postMessage('open')

function commitTogether(first: MessagePort, writes: readonly Write[]): void {
  const batches = new Map([[first, [...writes]]])
  let rows = writes.length
  for (const port of ports) {
    while (rows < batchRowsMax) {
      const more = receiveMessageOnPort(port)
      if (more === undefined) break
      const batch = batches.get(port) ?? []
      batch.push(...(more.message as readonly Write[]))
      batches.set(port, batch)
      rows += more.message.length
    }
  }

  try {
    const begun = performance.now()
    const changed = commit([...batches.values()].flat())
    let done: Commit | undefined = { rows, ms: performance.now() - begun }
    for (const [port, batch] of batches) {
      const own = changed.splice(0, batch.length)
      answer(port, done === undefined ? { changed: own } : { changed: own, commit: done })
      done = undefined
    }
  } catch (error) {
    const failure = detailedReasonOf(error)
    if (!isLockedOut(error) && !recover()) {
      for (const port of ports) answer(port, { notReady: failure })
      recovery ??= setInterval(recoverLater, recoverAfterMs).unref()
    }
    for (const [port, batch] of batches) answer(port, { failure, rows: batch.length })
  }
}

function answer(port: MessagePort, message: WriterAnswer): void {
  port.postMessage(message)
}

/** Nothing had been written yet: somebody else held the lock all the time that we would wait for it. */
function isLockedOut(error: unknown): boolean {
  return `${(error as { code?: unknown }).code}`.startsWith('SQLITE_BUSY')
}

function recover(): boolean {
  try {
    proofs = (proofs + 1n) % 2n ** 31n
    connection.pragma(`user_version = ${proofs}`)
    return true
  } catch {
    return false
  }
}

function recoverLater(): void {
  if (!recover()) return
  clearInterval(recovery)
  recovery = undefined
  for (const port of ports) answer(port, { notReady: undefined })
}
