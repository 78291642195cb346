import assert from 'node:assert/strict'
import { fdatasyncSync, fstatSync, statfsSync } from 'node:fs'
import { dirname, extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Database, Statement } from 'better-sqlite3'
import { reasonOf } from '../errors.ts'
import { sleep } from './connection.ts'

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
  readonly connection: Database
  /** A descriptor of the database file. It stays open longer than the connection. */
  readonly descriptor: number
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
  /** Called if pages that are counted as copied may be lost. */
  readonly onLoss: (reason: string) => void
}

export interface PassOutcome {
  /** Why pages could not be copied. None of them is counted as copied. */
  readonly failure: string | undefined
  /** Why pages that are counted as copied may not be on disk. */
  readonly loss: string | undefined
}

/** The row in which SQLite reports the state of a WAL. */
interface WalRow {
  /** 1 if another connection was copying. */
  readonly busy: number
  readonly log: number
  readonly checkpointed: number
}

/** The number of pages in a WAL. */
interface WalPages {
  readonly all: number
  readonly copied: number
  readonly left: number
}

/** The thread that makes passes. It is started when it is first needed. */
type ThreadState =
  | { readonly kind: 'absent' }
  | { readonly kind: 'idle'; readonly thread: Worker }
  | { readonly kind: 'copying'; readonly thread: Worker }
  /** It has failed. The writer makes all passes from now on. */
  | { readonly kind: 'ended' }

/**
 * From which length, in pages of 4 KiB, a WAL is copied. With ids in any order, a longer
 * WAL holds the same page many times, and a pass copies it once.
 */
const checkpointPages = 8_000
const mixedPages = 1_000
const lastPagesMax = checkpointPages / 32
const writerPages = 3 * checkpointPages
export const longPages = 4 * checkpointPages

/**
 * How long the writer waits for the pass of the thread or of another process. After that,
 * it copies the pages itself.
 */
const passTimeoutMs = 5_000

/**
 * Copies the WAL to the database, in passes. Once all is copied, the next commit restarts
 * the WAL. No answer waits for a pass (`writer.ts`), but the next transaction waits for a
 * pass of the writer. The length of the WAL decides who copies:
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
  readonly #options: CheckpointerOptions
  /** Counts the pages of the WAL without copying any. */
  readonly #count: Statement<[], WalRow>
  readonly #copy: Statement<[], Pick<WalRow, 'busy'>>
  /** Resolves when the thread has exited. */
  readonly #exited = Promise.withResolvers<void>()

  /** The largest number of pages of the WAL. */
  readonly #pagesMax: number
  readonly #pageBytes: number

  #state: ThreadState = { kind: 'absent' }
  /** Why the last pass failed. */
  #failure: string | undefined

  constructor(options: CheckpointerOptions) {
    const { connection } = options
    this.#options = options
    this.#count = connection.prepare('pragma wal_checkpoint(noop)')
    this.#copy = connection.prepare('pragma wal_checkpoint(passive)')
    this.#pageBytes = Number(connection.pragma('page_size', { simple: true }))
    this.#pagesMax = options.walBytesMax / this.#pageBytes
    this.#count.safeIntegers(false)
    this.#copy.safeIntegers(false)
  }

  /**
   * Copies the WAL if it is long. Returns why no transaction may begin, or `undefined`.
   *
   * @param waitMs how long it may wait for another program that reads an old state
   */
  copyIfLong(recent: RecentChanges, waitMs = 0): string | undefined {
    const pages = this.#countPages()
    const copyFrom = recent.single && recent.bulk ? mixedPages : checkpointPages
    if (pages.all < copyFrom || pages.left === 0) {
      return undefined
    }

    if (this.#mustCopyHere(pages, recent)) {
      this.#copyHere()
    } else if (this.#state.kind !== 'copying') {
      this.#copyInThread(pages)
    }

    const endMs = performance.now() + waitMs
    while (this.#isHeldAt(pages.all) && performance.now() < endMs) {
      sleep()
      this.#copyHere()
    }
    return this.#tooLongReason(pages.all)
  }

  /** Ends the thread, after a pass that it is making. */
  async stop(): Promise<void> {
    if (this.#state.kind === 'absent') {
      return
    }
    if (this.#state.kind !== 'ended') {
      this.#state.thread.postMessage('close')
    }
    await this.#exited.promise
  }

  #countPages(): WalPages {
    const row = this.#count.get()
    assert(row !== undefined, 'SQLite reports the state of the WAL')
    const { log: all, checkpointed: copied } = row
    return { all, copied, left: all - copied }
  }

  #mustCopyHere(pages: WalPages, recent: RecentChanges): boolean {
    if (this.#state.kind === 'ended') {
      return true
    }
    if (pages.left > longPages && this.#failure === undefined) {
      return pages.all >= this.#pagesMax / 2
    }
    if (pages.all >= writerPages) {
      return true
    }
    if (this.#state.kind === 'copying') {
      return false
    }
    return recent.bulk || pages.left <= lastPagesMax
  }

  #copyHere(): void {
    const endMs = performance.now() + passTimeoutMs
    const copy = () => {
      while (this.#copy.get()?.busy === 1 && performance.now() < endMs) {
        sleep()
      }
    }
    this.#settle(makePass(copy, this.#options.descriptor))
  }

  #copyInThread(pages: WalPages): void {
    const thread = this.#ensureThread()
    this.#state = { kind: 'copying', thread }
    thread.once('message', (outcome: PassOutcome) => {
      this.#state = { kind: 'idle', thread }
      this.#options.handleErrors(() => {
        this.#settle(outcome)
        if (this.#countPages().copied > pages.copied) {
          this.#options.onPass()
        }
      })
    })
    thread.postMessage('copy')
  }

  /** Returns the thread, and starts it if there is none. */
  #ensureThread(): Worker {
    if (this.#state.kind === 'idle' || this.#state.kind === 'copying') {
      return this.#state.thread
    }

    const { connection, descriptor } = this.#options
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

  #onExit(): void {
    const wasCopying = this.#state.kind === 'copying'
    this.#state = { kind: 'ended' }
    // It may have copied pages, so they need an fsync.
    if (wasCopying) {
      const outcome = makePass(() => {}, this.#options.descriptor)
      this.#options.handleErrors(() => this.#settle(outcome))
    }
    this.#exited.resolve()
  }

  /** Reports what has changed with a pass. */
  #settle({ failure, loss }: PassOutcome): void {
    if (loss !== undefined) {
      this.#options.onLoss(loss)
    }
    if (failure !== this.#failure) {
      this.#options.onFailureChange(failure)
    }
    this.#failure = failure
  }

  /** Returns whether another program keeps the WAL from being copied at its limit. */
  #isHeldAt(pages: number): boolean {
    const isCopied = () => this.#countPages().left === 0
    return pages >= this.#pagesMax && this.#failure === undefined && !isCopied()
  }

  #tooLongReason(pages: number): string | undefined {
    if (pages < Math.min(longPages, this.#pagesMax) || this.#countPages().left === 0) {
      return undefined
    }
    if (this.#failure !== undefined) {
      return `its WAL is full, as it cannot be copied to the database: ${this.#failure}`
    }
    if (pages >= this.#pagesMax) {
      return 'its WAL is full, as another program reads an old state of the store'
    }
    if (this.#isDiskNearlyFull()) {
      return 'the disk is nearly full, and another program that reads an old state of the store keeps its WAL long'
    }
    return undefined
  }

  /**
   * Returns whether the WAL might not fit into the database any more, if the next
   * transaction makes it longer.
   */
  #isDiskNearlyFull(): boolean {
    const { connection, descriptor } = this.#options
    const pages = Number(connection.pragma('page_count', { simple: true }))
    const growthBytes = pages * this.#pageBytes - fstatSync(descriptor).size
    const { bavail, bsize } = statfsSync(dirname(connection.name))
    return bavail * bsize < growthBytes + longPages * this.#pageBytes
  }
}

/** Copies pages of the WAL, and fsyncs the database. */
export function makePass(copy: () => void, descriptor: number): PassOutcome {
  const failure = failureOf(copy)
  const loss = failureOf(() => fdatasyncSync(descriptor))
  return { failure, loss }
}

/** Runs the work. Returns the reason if it fails. */
function failureOf(work: () => void): string | undefined {
  try {
    work()
    return undefined
  } catch (error) {
    return reasonOf(error, { withCode: true })
  }
}
