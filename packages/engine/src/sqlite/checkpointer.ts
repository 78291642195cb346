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
const copyFromPages = 8_000
/** The same while there are single and bulk changes. */
const copyMixedFromPages = 1_000
/** The writer copies the last pages itself if there are no more than these. */
const lastPagesMax = copyFromPages / 32
/** From which length the writer copies, even beside the thread. */
const writerFromPages = 3 * copyFromPages
/**
 * More pages left than these would keep the writer for seconds. From this length on, a
 * WAL that cannot be copied may be full.
 */
export const longPages = 4 * copyFromPages

const heldReason = 'its WAL is full, as another program reads an old state of the store'

/**
 * How long the writer waits for a pass of the thread or another process, before it makes
 * its own. Then it goes on without, and tries again after a later transaction. A pass
 * itself has no time limit.
 */
const busyTimeoutMs = 5_000

/**
 * Copies the WAL to the database, in passes. Once all is copied, the next commit restarts
 * the WAL. No answer to a stored change waits for a pass (`writer.ts`), but the next
 * transaction waits for a pass of the writer.
 *
 * A WAL is copied from `copyFromPages` (32 MiB) on. While there are single and bulk
 * changes, it is copied from `copyMixedFromPages` (4 MiB) on, which takes a short time.
 * The first of these rules that applies says who copies:
 *
 * 1. The thread has ended: the writer.
 * 2. More than `longPages` (128 MiB) are left, and the last pass has not failed: the
 *    thread, because the writer would take seconds. So many are left only after another
 *    program has read an old state, such as a backup. Nobody can copy meanwhile. From
 *    half of `walBytesMax` on: the writer.
 * 3. The WAL has `writerFromPages` (96 MiB): the writer. It waits for a pass of the
 *    thread.
 * 4. The thread is making a pass: nobody else.
 * 5. There are bulk changes: the writer, because they write faster than the thread
 *    copies.
 * 6. At most `lastPagesMax` (1 MiB) are left: the writer, in 6 to 9 ms. The thread would
 *    always find others.
 * 7. Otherwise the thread. Nobody waits.
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
   * Copies the WAL if it is long, or lets the thread copy it. Returns why the WAL is too
   * long for another transaction, or `undefined`.
   *
   * @param waitMs how long it may wait for another program that reads an old state
   */
  limitWal(recent: RecentChanges, waitMs = 0) {
    const pages = this.#guard.countWalPages()
    const copyFrom = recent.single && recent.bulk ? copyMixedFromPages : copyFromPages
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

  /** Whether the writer copies, by the rules above in their order. */
  #mustCopyHere(pages: WalPages, recent: RecentChanges) {
    if (this.#state === 'ended') {
      return true
    }
    if (pages.left > longPages && this.#failure === undefined) {
      return pages.all >= this.#pagesMax / 2
    }
    if (pages.all >= writerFromPages) {
      return true
    }
    if (this.#state === 'copying') {
      return false
    }
    return recent.bulk || pages.left <= lastPagesMax
  }

  #copyHere() {
    const endMs = performance.now() + busyTimeoutMs
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

  #tooLongReason(allPages: number) {
    if (
      allPages < Math.min(longPages, this.#pagesMax) ||
      this.#guard.countWalPages().left === 0
    ) {
      return
    }
    if (this.#failure !== undefined) {
      return `its WAL is full, as it cannot be copied to the database: ${this.#failure}`
    }
    if (allPages >= this.#pagesMax) {
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
