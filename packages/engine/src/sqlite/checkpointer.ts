import { fdatasyncSync, fstatSync, statfsSync } from 'node:fs'
import { dirname, extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Statement } from 'better-sqlite3'
import { reasonWithCode } from '../errors.ts'
import { sleep } from './connection.ts'
import type { FileGuard, WalPages } from './guard.ts'
import { readPragma } from './store-header.ts'

/** The kinds of changes that arrived or were committed within the last second. */
export interface RecentChanges {
  readonly single: boolean
  readonly bulk: boolean
}

export interface CheckpointerData {
  readonly file: string
  readonly descriptor: number
}

export interface CheckpointerOptions {
  readonly guard: FileGuard
  /** How long the WAL may become while another program reads an old state, in bytes. */
  readonly walBytesMax: number
  /** Called if the thread has copied pages, because others may have come meanwhile. */
  readonly onPass: () => void
  /** Does the work that follows a pass of the thread, and handles its errors. */
  readonly handleErrors: (work: () => void) => void
  /**
   * Called with the reason when passes begin to fail, and without once one has worked.
   */
  readonly onFailureChange: (reason: string | undefined) => void
}

export type PassOutcome = ReturnType<typeof makePass>

/**
 * From which length, in pages of 4 KiB, a WAL is copied. With ids in any order, a longer
 * WAL holds the same page many times, and a pass copies it once.
 */
const checkpointPages = 8_000
const mixedPages = 1_000
const lastPagesMax = checkpointPages / 32
const writerPages = 3 * checkpointPages
export const longPages = 4 * checkpointPages

const heldReason = 'its WAL is full, as another program reads an old state of the store'

/**
 * How long the writer tries to make a pass while the thread or another process makes one.
 * After that, it goes on without, and tries again before a later transaction.
 */
const passTimeoutMs = 5_000

/**
 * Copies the WAL to the database, in passes. Once all is copied, the next commit restarts
 * the WAL. No answer to a stored change waits for a pass (`writer.ts`), but the next
 * transaction waits for a pass of the writer. The length of the WAL decides who copies:
 *
 * - Below `checkpointPages` (32 MiB), nobody, unless there are bulk changes beside single
 *   ones: then the writer, from `mixedPages` (4 MiB), which takes a short time.
 * - From `checkpointPages`, if there are bulk changes: the writer, because they write
 *   faster than the thread copies.
 * - From `checkpointPages`, if at most `lastPagesMax` (1 MiB) are left: the writer, in 6
 *   to 9 ms. The thread would always find others.
 * - From `checkpointPages` otherwise: the thread. Nobody waits. Below `writerPages`, the
 *   writer makes no pass meanwhile.
 * - From `writerPages` (96 MiB), or once the thread has ended: the writer.
 * - If more than `longPages` (128 MiB) are left: the thread, because the writer would
 *   take seconds. So many are left only after another program has read an old state, such
 *   as a backup. Nobody can copy meanwhile. From half of `walBytesMax` on: the writer.
 *
 * From `longPages` on, changes get 503 if pages cannot be copied because the disk refuses
 * them or would be full. While another program reads an old state, they get 503 only from
 * `walBytesMax` on. The last transaction may have added 128 MiB.
 *
 * SQLite counts the pages of a pass as copied before they are on disk, unless the pass
 * has copied all of the WAL. So each pass ends with an fsync. One that fails is a loss:
 * the next would succeed without the pages that it was for.
 */
export class Checkpointer {
  readonly #options
  readonly #guard
  /** `busy` is 1 if another connection is copying. */
  readonly #copy: Statement<[], { busy: number }>
  /** The largest number of pages of the WAL. */
  readonly #pagesMax

  /** The thread that makes passes. It is started when it is first needed. */
  #thread: Worker | undefined
  /** Once the thread has failed and `ended`, the writer makes all passes. */
  #state: 'idle' | 'copying' | 'ended' = 'idle'
  /** Why the last pass failed. */
  #failure: string | undefined

  constructor(options: CheckpointerOptions) {
    const { guard, walBytesMax } = options
    this.#options = options
    this.#guard = guard
    this.#copy = guard.connection.prepare('pragma wal_checkpoint(passive)')
    this.#copy.safeIntegers(false)
    this.#pagesMax = walBytesMax / guard.pageBytes
  }

  /**
   * Copies the WAL if it is long. Returns why no transaction may begin, or `undefined`.
   *
   * @param waitMs how long it may wait for another program that reads an old state
   */
  copyIfLong(recent: RecentChanges, waitMs = 0) {
    const pages = this.#guard.countWalPages()
    const copyFrom = recent.single && recent.bulk ? mixedPages : checkpointPages
    if (pages.all < copyFrom || pages.left === 0) {
      return
    }

    if (this.#mustCopyHere(pages, recent)) {
      this.#copyHere()
    } else if (this.#state === 'idle') {
      this.#copyInThread(pages)
    }

    const endMs = performance.now() + waitMs
    let reason = this.#tooLongReason(pages.all)
    while (reason === heldReason && performance.now() < endMs) {
      sleep()
      this.#copyHere()
      reason = this.#tooLongReason(pages.all)
    }
    return reason
  }

  /** Ends the thread, after a pass that it is making. */
  async stop() {
    if (this.#thread === undefined) {
      return
    }
    const exited = Promise.withResolvers<void>()
    this.#thread.once('exit', exited.resolve)
    this.#thread.postMessage('close')
    await exited.promise
  }

  #mustCopyHere(pages: WalPages, recent: RecentChanges) {
    if (this.#state === 'ended') {
      return true
    }
    if (pages.left > longPages && this.#failure === undefined) {
      return pages.all >= this.#pagesMax / 2
    }
    if (pages.all >= writerPages) {
      return true
    }
    return this.#state === 'idle' && (recent.bulk || pages.left <= lastPagesMax)
  }

  #copyHere() {
    const endMs = performance.now() + passTimeoutMs
    const copy = () => {
      while (this.#copy.get()?.busy === 1 && performance.now() < endMs) {
        sleep()
      }
    }
    this.#settle(makePass(copy, this.#guard.descriptor))
  }

  #copyInThread(pages: WalPages) {
    this.#thread ??= this.#startThread()
    this.#state = 'copying'
    this.#thread.once('message', (outcome: PassOutcome) => {
      this.#state = 'idle'
      this.#options.handleErrors(() => {
        this.#settle(outcome)
        if (this.#guard.countWalPages().copied > pages.copied) {
          this.#options.onPass()
        }
      })
    })
    this.#thread.postMessage('copy')
  }

  #startThread() {
    const { connection, descriptor } = this.#guard
    const workerData: CheckpointerData = { file: connection.name, descriptor }
    // `.ts` in tests, `.js` in a build.
    const name = `./checkpointer-thread${extname(import.meta.url)}`
    const thread = new Worker(new URL(name, import.meta.url), {
      workerData,
      resourceLimits: { maxYoungGenerationSizeMb: 1 },
    })
    // The exit follows, and says enough.
    thread.on('error', () => {})
    thread.on('exit', () => this.#onExit())
    return thread
  }

  #onExit() {
    const wasCopying = this.#state === 'copying'
    this.#thread = undefined
    this.#state = 'ended'
    // It may have copied pages, so they need an fsync.
    if (wasCopying) {
      const outcome = makePass(() => {}, this.#guard.descriptor)
      this.#options.handleErrors(() => this.#settle(outcome))
    }
  }

  /** Reports what has changed with a pass. */
  #settle({ failure, loss }: PassOutcome) {
    if (loss !== undefined) {
      this.#guard.failForLostPages(loss)
    }
    if (failure !== this.#failure) {
      this.#options.onFailureChange(failure)
    }
    this.#failure = failure
  }

  #tooLongReason(pages: number) {
    if (
      pages < Math.min(longPages, this.#pagesMax) ||
      this.#guard.countWalPages().left === 0
    ) {
      return
    }
    if (this.#failure !== undefined) {
      return `its WAL is full, as it cannot be copied to the database: ${this.#failure}`
    }
    if (pages >= this.#pagesMax) {
      return heldReason
    }
    if (this.#isDiskNearlyFull()) {
      return 'the disk is nearly full, and another program that reads an old state of the store keeps its WAL long'
    }
    return
  }

  /**
   * Returns whether the WAL might not fit into the database any more, if the next
   * transaction makes it longer.
   */
  #isDiskNearlyFull() {
    const { connection, descriptor, pageBytes } = this.#guard
    const pages = readPragma(connection, 'page_count')
    const growthBytes = pages * pageBytes - fstatSync(descriptor).size
    const { bavail, bsize } = statfsSync(dirname(connection.name))
    return bavail * bsize < growthBytes + longPages * pageBytes
  }
}

/** Copies pages of the WAL, and fsyncs the database. */
export function makePass(copy: () => void, descriptor: number) {
  return {
    /** Why pages could not be copied. None of them is counted as copied. */
    failure: failureOf(copy),
    /** Why pages that are counted as copied may not be on disk. */
    loss: failureOf(() => fdatasyncSync(descriptor)),
  }
}

/** Runs the work. Returns the reason if it fails. */
function failureOf(work: () => void) {
  try {
    work()
    return
  } catch (error) {
    return reasonWithCode(error)
  }
}
