import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import type { Write } from '../commit-queue.ts'
import type { Statements } from '../statements.ts'
import { prepareCommit } from './commit.ts'
import { openWriter } from './connection.ts'

/**
 * The thread that waits for the disk, for every thread that writes to the store. Each has a port and at most one batch
 * of changes under way; whatever has come in by the time the last commit is done shares the next one.
 *
 * After a commit that failed, SQLite has taken its changes back, but the log file may still hold them whole, and
 * would bring them back to life should the process die now. So the writer first makes a commit of its own, which
 * overwrites them, and until that works it is not ready for others.
 */
export type WriterAnswer =
  | { readonly changed: readonly number[] }
  | { readonly failure: string }
  /** Whether the writer can write at all, told to every port when it changes. */
  | { readonly notReady: string | undefined }

export type WriterCommand = { readonly join: MessagePort } | 'close'

const recoverAfterMs = 1_000

const owner = parentPort
if (owner === null) throw new Error('writer.js runs as a worker thread')

export interface WriterData {
  readonly file: string
  readonly statements: Statements['write']
}

const { file, statements } = workerData as WriterData
const connection = openWriter(file)
const commit = prepareCommit(connection, statements)
let proofs = connection.pragma('user_version', { simple: true }) as bigint
const ports = new Set<MessagePort>()

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

function commitTogether(port: MessagePort, writes: readonly Write[]): void {
  const batches = [{ port, writes }]
  for (const other of ports) {
    const waiting = other === port ? undefined : receiveMessageOnPort(other)
    if (waiting !== undefined) batches.push({ port: other, writes: waiting.message })
  }

  try {
    const changed = commit(batches.flatMap(batch => batch.writes))
    for (const batch of batches) answer(batch.port, { changed: changed.splice(0, batch.writes.length) })
  } catch (error) {
    const failure = describe(error)
    const ready = isLockedOut(failure) || recover()
    if (!ready) {
      for (const each of ports) answer(each, { notReady: failure })
      keepRecovering()
    }
    for (const batch of batches) answer(batch.port, { failure })
  }
}

function answer(port: MessagePort, message: WriterAnswer): void {
  port.postMessage(message)
}

/** Nothing had been written yet: somebody else held the lock all the time that we would wait for it. */
function isLockedOut(failure: string): boolean {
  return failure.startsWith('SQLITE_BUSY')
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

function keepRecovering(): void {
  setTimeout(() => {
    if (!recover()) return keepRecovering()
    for (const port of ports) answer(port, { notReady: undefined })
  }, recoverAfterMs)
}

function describe(error: unknown): string {
  const { code = 'Error', message } = error as { code?: string; message: string }
  return `${code}: ${message}`
}
