import { fdatasyncSync } from 'node:fs'
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type Database from 'better-sqlite3'
import { detailedReasonOf, sleep } from './connection.ts'

/** Of which kinds there were changes within the last second. */
export interface RecentChanges {
  readonly single: boolean
  readonly bulk: boolean
}

export interface CheckpointerData {
  readonly file: string
  readonly descriptor: number
}

export interface CheckpointerOptions {
  readonly connection: Database.Database
  /** Of the database, which it outlives. */
  readonly descriptor: number
  /** Is called if the thread has copied pages, and others may have come. */
  readonly onPass: () => void
  /** Is called with the reason when passes begin to fail, and without when one has worked again. */
  readonly onFailureChange: (reason?: string) => void
  /** Is called if pages are counted as copied, and may be lost. */
  readonly onLoss: (reason: string) => void
}

/** What SQLite reports of a WAL, always in one row. */
type WalPages = { readonly log: number; readonly checkpointed: number }

/** Pages of 4 KiB. With ids in any order a longer WAL holds the same page many times, and a checkpoint copies it once. */
const checkpointPages = 8_000
const mixedPages = 1_000
const lastPagesMax = checkpointPages / 32
const writerPages = 3 * checkpointPages
export const walPagesMax = 4 * checkpointPages
/** For a pass of the thread, or of another process, before the writer copies the pages itself. */
const passTimeoutMs = 5_000

/**
 * Copies the WAL to the database, in passes. Once all is copied, the next commit restarts the WAL. No answer waits for a
 * pass (`writer.ts`). The next transaction waits for one of the writer's.
 *
 * | pages of the WAL | who copies | who waits |
 * | --- | --- | --- |
 * | below `checkpointPages`, 32 MiB | nobody | nobody |
 * | from `mixedPages`, 4 MiB, with bulk changes beside single ones | the writer | the next transaction, for a short time |
 * | from `checkpointPages`, with bulk changes | the writer, as they write faster than the thread copies | the next transaction |
 * | from `checkpointPages`, of which at most `lastPagesMax`, 1 MiB, are left | the writer: the thread would always find others | the next transaction, 6 to 9 ms |
 * | from `checkpointPages` | a thread, which starts when it is needed | nobody |
 * | from `writerPages`, 96 MiB, or without the thread | the writer | the next transaction |
 * | from `walPagesMax`, 128 MiB, that cannot be copied | nobody can | changes get 503. The last transaction may add as much again |
 *
 * SQLite counts the pages of a pass as copied before they are on disk, unless it was the last one. So each pass ends with
 * an fsync, and one that fails is a loss: the next would succeed without the pages that it was for.
 */
export function createCheckpointer({
  connection,
  descriptor,
  onPass,
  onFailureChange,
  onLoss,
}: CheckpointerOptions) {
  const { name: file } = connection
  const noop = connection.prepare<[], WalPages>('pragma wal_checkpoint(noop)')
  const passive = connection.prepare<[], { busy: number }>(
    'pragma wal_checkpoint(passive)',
  )
  for (const statement of [noop, passive]) {
    statement.safeIntegers(false)
  }
  const exited = Promise.withResolvers<void>()
  let thread: Worker | undefined
  let isUnderWay = false
  let hasExited = false
  let failure: string | undefined

  const walState = () => {
    const { log: pages, checkpointed: copied } = noop.get() as WalPages
    return { pages, copied, left: pages - copied }
  }
  const settle = (outcome: PassOutcome) => {
    if (outcome.loss !== undefined) {
      onLoss(outcome.loss)
    }
    if (outcome.failure !== failure) {
      onFailureChange(outcome.failure)
    }
    failure = outcome.failure
  }

  const start = () => {
    const workerData: CheckpointerData = { file, descriptor }
    const script = new URL(
      `./checkpointer-thread${extname(import.meta.url)}`,
      import.meta.url,
    )
    const started = new Worker(script, {
      workerData,
      resourceLimits: { maxYoungGenerationSizeMb: 1 },
    })
    started.on('error', () => {})
    started.on('exit', () => {
      hasExited = true
      // It may have copied pages.
      if (isUnderWay) {
        settle(makePass(() => {}, descriptor))
      }
      exited.resolve()
    })
    return started
  }
  const passInThread = (copied: number) => {
    isUnderWay = true
    thread ??= start()
    thread.once('message', (outcome: PassOutcome) => {
      isUnderWay = false
      settle(outcome)
      if (walState().copied > copied) {
        onPass()
      }
    })
    thread.postMessage('copy')
  }
  const passHere = () => {
    const until = performance.now() + passTimeoutMs
    const copy = () => {
      while (passive.get()?.busy === 1 && performance.now() < until) {
        sleep()
      }
    }
    settle(makePass(copy, descriptor))
  }

  return {
    /** Copies the WAL if it is long. Returns why no transaction may begin, or `undefined`. */
    copyIfLong({ single, bulk }: RecentChanges): string | undefined {
      const { pages, copied, left } = walState()
      if (pages < (single && bulk ? mixedPages : checkpointPages) || left === 0) {
        return
      }
      if (
        pages >= writerPages ||
        hasExited ||
        (!isUnderWay && (bulk || left <= lastPagesMax))
      ) {
        passHere()
      } else if (!isUnderWay) {
        passInThread(copied)
      }
      if (pages < walPagesMax || walState().left === 0) {
        return
      }
      return failure === undefined
        ? 'its WAL is full, as another program reads an old state of the store'
        : `its WAL is full, as it cannot be copied to the database: ${failure}`
    },
    /** Ends the thread, after a pass that is under way. */
    async stop() {
      thread?.postMessage('close')
      if (thread !== undefined) {
        await exited.promise
      }
    },
  }
}

export interface PassOutcome {
  /** Why pages could not be copied. None of them is counted as copied. */
  readonly failure: string | undefined
  /** Why pages that are counted as copied may not be on disk. */
  readonly loss: string | undefined
}

/** Copies pages of the WAL, and fsyncs the database. */
export function makePass(copy: () => void, descriptor: number): PassOutcome {
  return { failure: failureOf(copy), loss: failureOf(() => fdatasyncSync(descriptor)) }
}

function failureOf(work: () => void): string | undefined {
  try {
    work()
    return
  } catch (error) {
    return detailedReasonOf(error)
  }
}
