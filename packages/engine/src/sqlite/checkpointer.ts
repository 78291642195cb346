import { fdatasyncSync } from 'node:fs'
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type Database from 'better-sqlite3'
import { detailedReasonOf, sleep } from './connection.ts'

/** Of which kinds there were changes within the last second. */
export interface ChangesInUse {
  readonly single: boolean
  readonly bulk: boolean
}

export interface CheckpointerData {
  readonly file: string
  readonly descriptor: number
}

/**
 * From this length on the WAL is copied to the database: 32 MiB. With ids in any order a longer WAL holds the same page
 * many times, and a checkpoint copies it once.
 */
const checkpointPages = 8_000
/** While bulk changes fill the WAL beside single ones, these wait for short copies. */
const mixedPages = 1_000
/** The writer copies so few pages itself: the thread would find others after each pass. */
const lastPagesMax = checkpointPages / 32
/** From this length on the writer copies the pages itself, as the thread is too slow. */
const writerPages = 3 * checkpointPages
/**
 * No transaction begins on a longer WAL that cannot be copied, as another connection reads an old state. The last one may
 * add as much again, with 10,000 rows of an import: a WAL has at most 256 MiB, which are 65,000 pages.
 */
export const walPagesMax = 4 * checkpointPages
/** For a pass of the thread, or of another process, before the writer copies the pages itself. */
const passTimeoutMs = 5_000

/**
 * Copies the WAL to the database, in a thread that starts when it is needed. The writer goes on meanwhile, and copies the
 * last pages itself: only if all are copied, the next commit restarts the WAL. Bulk changes write pages faster than
 * the thread copies them, so that the writer does it.
 *
 * SQLite counts the pages of a pass as copied before they are on disk, unless it was the last one. So each pass ends with
 * an fsync. After one that failed, the next would succeed without the pages that it was for.
 *
 * @param descriptor of the database
 * @param onPass is called if the thread has copied pages, and others may have come
 * @param onLoss is called if pages are counted as copied, and may be lost
 */
export function createCheckpointer(
  connection: Database.Database,
  descriptor: number,
  onPass: () => void,
  onLoss: (reason: string) => void,
) {
  const { name: file } = connection
  const state = connection.prepare<[], { log: number; checkpointed: number }>('pragma wal_checkpoint(noop)')
  const pass = connection.prepare<[], { busy: number }>('pragma wal_checkpoint(passive)')
  for (const statement of [state, pass]) statement.safeIntegers(false)
  const exited = Promise.withResolvers<void>()
  let thread: Worker | undefined
  let isUnderWay = false
  let hasExited = false

  const walState = () => {
    const { log, checkpointed } = state.get() as NonNullable<ReturnType<typeof state.get>>
    return { log, checkpointed, left: log - checkpointed }
  }
  const loseIf = (reason: string | undefined) => {
    if (reason !== undefined) onLoss(reason)
  }

  const start = () => {
    const workerData: CheckpointerData = { file, descriptor }
    const script = new URL(`./checkpointer-thread${extname(import.meta.url)}`, import.meta.url)
    const started = new Worker(script, { workerData, resourceLimits: { maxYoungGenerationSizeMb: 1 } })
    started.on('error', () => {})
    started.on('exit', () => {
      hasExited = true
      if (isUnderWay) loseIf(fsyncFailure(descriptor))
      exited.resolve()
    })
    return started
  }
  const passInThread = (before: number) => {
    isUnderWay = true
    thread ??= start()
    thread.once('message', (reason?: string) => {
      isUnderWay = false
      loseIf(reason)
      if (walState().checkpointed > before) onPass()
    })
    thread.postMessage('copy')
  }
  const passHere = () => {
    const until = performance.now() + passTimeoutMs
    try {
      while (pass.get()?.busy === 1 && performance.now() < until) sleep()
    } catch {
      // None of its pages is counted.
    }
    loseIf(fsyncFailure(descriptor))
  }

  return {
    /** Copies what there is to copy. Returns why the next transaction cannot begin, or `undefined`. */
    copy({ single, bulk }: ChangesInUse): string | undefined {
      const { log, checkpointed, left } = walState()
      if (log < (single && bulk ? mixedPages : checkpointPages) || left === 0) return
      if (log >= writerPages || hasExited || (!isUnderWay && (bulk || left <= lastPagesMax))) passHere()
      else if (!isUnderWay) passInThread(checkpointed)
      if (log < walPagesMax || walState().left === 0) return
      return 'its WAL is full, as another program reads an old state of the store'
    },
    /** Ends the thread, after a pass that is under way. */
    async stop() {
      thread?.postMessage('close')
      if (thread !== undefined) await exited.promise
    },
  }
}

/** Returns why a file could not be fsynced, or `undefined`. */
export function fsyncFailure(descriptor: number): string | undefined {
  try {
    fdatasyncSync(descriptor)
    return
  } catch (error) {
    return detailedReasonOf(error)
  }
}
