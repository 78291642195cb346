import { parentPort, workerData } from 'node:worker_threads'
import type { Write } from '../commit-queue.ts'
import { prepareCommit } from './commit.ts'
import { openWriter } from './connection.ts'

/**
 * The thread that waits for the disk. One message in, a batch of changes; one message out, what became of it.
 *
 * After a commit that failed, SQLite has taken its changes back, but the log file may still hold them whole, and
 * would bring them back to life should the process die now. So the writer first makes a commit of its own, which
 * overwrites them, and until that works it is not ready for others.
 */
export type WriterAnswer =
  | { readonly changed: readonly number[] }
  | { readonly failure: string; readonly ready: boolean }
  | { readonly ready: true }

const recoverAfterMs = 1_000

const port = parentPort
if (port === null) throw new Error('writer.js runs as a worker thread')

const answer = (message: WriterAnswer) => port.postMessage(message)
const connection = openWriter(workerData as string)
const commit = prepareCommit(connection)
let proofs = connection.pragma('user_version', { simple: true }) as bigint

port.on('message', (message: readonly Write[] | 'close') => {
  if (message === 'close') {
    connection.close()
    port.close()
    return
  }
  try {
    answer({ changed: commit(message) })
  } catch (error) {
    const ready = isLockedOut(error) || recover()
    answer({ failure: describe(error), ready })
    if (!ready) keepRecovering()
  }
})
answer({ ready: true })

/** Nothing had been written yet: somebody else held the lock all the time that we would wait for it. */
function isLockedOut(error: unknown): boolean {
  return describe(error).startsWith('SQLITE_BUSY')
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
    if (recover()) answer({ ready: true })
    else keepRecovering()
  }, recoverAfterMs)
}

function describe(error: unknown): string {
  const { code = 'Error', message } = error as { code?: string; message: string }
  return `${code}: ${message}`
}
