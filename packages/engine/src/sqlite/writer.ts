import type { MessagePort } from 'node:worker_threads'
import type { Database } from 'better-sqlite3'
import { isBusy, reasonWithCode } from '../errors.ts'
import type { Change, ChangeStatement } from '../statements/statement.ts'
import type { Commit } from '../types.ts'
import { Arrivals, type ChangeKind } from './arrivals.ts'
import { Checkpointer } from './checkpointer.ts'
import { type MakeChange, prepareChange, sleep } from './connection.ts'
import { FileGuard } from './guard.ts'
import { readPragma } from './store-header.ts'

/** An answer to a MessagePort. The groups of one are answered in order of arrival. */
export type WriterAnswer =
  /**
   * The affected rows of the next group. Only the first group of a transaction gets the
   * figures of its commit.
   */
  | { readonly affectedRows: readonly number[]; readonly commit?: Commit }
  /** Why the transaction of the next group failed. */
  | { readonly reason: string }
  /**
   * Why the writer cannot write, or `undefined` once it can again. Every MessagePort gets
   * this.
   */
  | { readonly blockedBecause: string | undefined }
  /**
   * Why the WAL cannot be copied, or `undefined` once it can again. Only the first
   * MessagePort gets this.
   */
  | { readonly checkpointFailure: string | undefined }

export interface WriterOptions {
  /** The changes by the names with which threads send them. */
  readonly changeStatements: ReadonlyMap<string, ChangeStatement>
  /** The same as in `EngineOptions`. */
  readonly lockTimeoutMs: number
  readonly walBytesMax: number
}

/**
 * A transaction that has written this many bytes takes no further group. Its last group
 * may have added as many again, and an announcement for each webhook.
 */
const transactionBytesMax = 16 * 1024 * 1024

/** The estimated size of a row and its index entries, without its texts. */
const rowBytes = 192

/**
 * The pause after a transaction that wrote the most. Another process tries every 100 ms
 * to get the lock, so it succeeds after a few pauses.
 */
const pauseMs = 30

/**
 * How often the files and the WAL are checked under load. A check at every commit would
 * cost 6 % of the creates.
 */
const checkEveryMs = 10

/**
 * How often a timer checks the files and the WAL, under load or not. A blocked writer
 * then tries to recover.
 */
const checkTimerMs = 1_000

/**
 * The only writer of a store in this process. It makes the changes of all threads.
 *
 * A group that arrives begins a transaction, which takes the others that have arrived, up
 * to a limit (`arrivals.ts`): the more there are, the less a change costs. Its steps:
 *
 * 1. Check the files, unless they were checked within `checkEveryMs` (`guard.ts`).
 * 2. BEGIN IMMEDIATE, the changes, COMMIT with its fsync.
 * 3. Check the files again, unless they were checked within `checkEveryMs`.
 * 4. Answer the groups. They have waited for all of this.
 * 5. Copy the WAL if it is long (`checkpointer.ts`). Only the next transaction waits for
 *    it.
 *
 * The writer has two states:
 *
 * - Open: changes are made. This ends when a transaction has failed and cannot be
 *   overwritten, when the guard finds a fault, when the WAL is too long or its length
 *   cannot be read, and at any other error of step 5 or of the check of each second.
 * - Blocked: every thread refuses changes at once. This ends when `#tryToRecover`
 *   succeeds, which is called each second.
 *
 * The changes of a failed transaction get 503 (error 50302). If it could not get the
 * lock, it has written nothing. Otherwise SQLite has rolled the changes back. But the WAL
 * may still hold all of them, and a crash would restore them. So `#tryToRecover` commits
 * a small transaction, which overwrites them. If that fails, the writer is blocked. Only
 * then are the changes answered. If only step 3 fails, they get the same error, and may
 * be stored.
 *
 * Groups that Node has delivered by then, and that wait behind the transaction, get the
 * same error. Those that reach a port during COMMIT, or while the writer waits for the
 * lock in vain, get a transaction of their own. So one may wait for the lock nearly twice
 * as long as `lockTimeoutMs`.
 *
 * If pages cannot be copied in step 5, changes are still made until the WAL is full, and
 * the process logs the reason (`Checkpointer`).
 *
 * What must never happen:
 *
 * - An answer before the fsync.
 * - An answer to a change that a crash takes back.
 * - An answer when the files were removed, cut or overwritten more than `checkEveryMs`
 *   ago.
 * - A crash that restores a failed transaction after the writer is open again.
 */
export class Writer {
  readonly #lockTimeoutMs
  /** The changes by the names with which threads send them. */
  readonly #prepared = new Map<string, MakeChange>()
  readonly #guard
  readonly #checkpointer
  readonly #arrivals = new Arrivals()
  /** Makes the changes of groups, and commits them. */
  readonly #runTransaction
  readonly #checkTimer

  /** Why a blocked writer refuses all changes. `undefined` while it is open. */
  #blockedBecause: string | undefined
  /** When the length of the WAL was last checked, by `performance.now`. */
  #walCheckedAtMs = performance.now()

  /**
   * @throws Error if something is wrong with the files, after it has closed the
   *   connection
   */
  constructor(
    connection: Database,
    { changeStatements, lockTimeoutMs, walBytesMax }: WriterOptions,
  ) {
    this.#lockTimeoutMs = lockTimeoutMs
    for (const [name, change] of changeStatements) {
      this.#prepared.set(name, prepareChange(connection, change))
    }
    // This first read also opens the WAL, which the guard needs.
    connection.pragma('user_version')
    this.#guard = new FileGuard(connection)
    this.#checkpointer = new Checkpointer({
      guard: this.#guard,
      walBytesMax,
      onPass: () => this.#checkpoint(),
      handleErrors: work => this.#blockOnError(work),
      onFailureChange: checkpointFailure => {
        // The thread that opened the store was the first.
        const [sender] = this.#arrivals.senders.keys()
        if (sender !== undefined) {
          post(sender, { checkpointFailure })
        }
      },
    })

    // A transaction that begins with a read may be refused its first write without
    // waiting for the lock. So this one takes the lock when it begins.
    this.#runTransaction = connection.transaction(() => this.#makeChanges()).immediate
    this.#checkTimer = setInterval(() => this.#checkEachSecond(), checkTimerMs).unref()
  }

  /** Takes groups of changes from a port, and answers there. */
  connect(sender: MessagePort, kind: ChangeKind) {
    this.#arrivals.senders.set(sender, kind)
    sender.on('message', (changes: readonly Change[]) => {
      this.#arrivals.add(sender, changes)
      this.#commitWaiting()
    })
    sender.on('close', () => this.#arrivals.senders.delete(sender))
  }

  /** Closes all ports, and the connection. Merges the WAL if that does no harm. */
  async close() {
    clearInterval(this.#checkTimer)
    for (const sender of this.#arrivals.senders.keys()) {
      sender.close()
    }
    await this.#checkpointer.stop()
    this.#guard.closeStore()
  }

  /** Commits the groups that wait. Those that do not fit follow after other events. */
  #commitWaiting() {
    if (!this.#arrivals.hasWaiting()) {
      return
    }

    const hasWrittenMax = this.#commitOnce()
    const isCheckpointDue = performance.now() - this.#walCheckedAtMs > checkEveryMs
    if (this.#blockedBecause === undefined && isCheckpointDue) {
      this.#checkpoint()
    }
    if (hasWrittenMax) {
      sleep(pauseMs)
    }
    if (this.#arrivals.hasWaiting()) {
      setImmediate(() => this.#commitWaiting())
    }
  }

  /** Commits a transaction and answers its groups. Returns whether it wrote the most. */
  #commitOnce() {
    this.#arrivals.begin()
    if (this.#blockedBecause !== undefined) {
      this.#refuse(this.#blockedBecause)
      return false
    }

    try {
      this.#guard.check(checkEveryMs)
      const startMs = performance.now()
      const { changes, hasWrittenMax } = this.#runTransaction()
      const commit = { changes, ms: performance.now() - startMs }
      this.#guard.check(checkEveryMs)
      // Answer in the order of the groups. The first sender gets the commit.
      for (const [index, { sender, affectedRows }] of this.#arrivals.end().entries()) {
        post(sender, index === 0 ? { affectedRows, commit } : { affectedRows })
      }
      return hasWrittenMax
    } catch (error) {
      const reason = reasonWithCode(error)
      // Without the lock, the transaction has written nothing to the WAL.
      const mayHaveWritten = !isBusy(error)
      if (mayHaveWritten && !this.#tryToRecover()) {
        this.#setBlocked(reason)
      }
      this.#refuse(reason)
      return false
    }
  }

  /** Answers the groups of a failed transaction, and all that wait, with a reason. */
  #refuse(reason: string) {
    for (const { sender } of this.#arrivals.takeFailedAndWaiting()) {
      post(sender, { reason })
    }
  }

  /** Makes the changes of one group after another. */
  #makeChanges() {
    let changes = 0
    let bytes = 0
    while (bytes < transactionBytesMax) {
      const group = this.#arrivals.next()
      if (group === undefined) {
        break
      }
      for (const change of group.changes) {
        bytes += this.#makeChange(change, group.affectedRows)
      }
      changes += group.changes.length
    }
    return { changes, hasWrittenMax: bytes >= transactionBytesMax }
  }

  /**
   * Makes a change, and adds its affected rows. Returns about how many bytes it wrote.
   */
  #makeChange([name, ...values]: Change, affectedRows: number[]) {
    const run = this.#prepared.get(name)
    if (run === undefined) {
      throw new Error(`no statement has the name ${name}`)
    }
    const { rows, rowsOfPreceding } = run(values)
    affectedRows.push(rows)

    let bytes = rowBytes
    for (const value of values) {
      if (typeof value === 'string') {
        bytes += Buffer.byteLength(value)
      }
    }
    return (rows + rowsOfPreceding) * bytes
  }

  #checkEachSecond() {
    this.#blockOnError(() => {
      this.#guard.check()
      if (this.#blockedBecause === undefined) {
        this.#checkpoint()
      } else if (this.#tryToRecover()) {
        this.#setBlocked(undefined)
      }
    })
  }

  /** Copies the WAL if it is long, and blocks the writer if it stays too long. */
  #checkpoint() {
    this.#blockOnError(() => {
      // A full WAL that another program reads is waited for like a lock.
      const tooLongReason = this.#checkpointer.limitWal(
        this.#arrivals.recent(),
        this.#lockTimeoutMs,
      )
      this.#walCheckedAtMs = performance.now()
      if (tooLongReason !== undefined) {
        this.#setBlocked(tooLongReason)
      }
    })
  }

  /** Does work that no group waits for. An error blocks the writer. */
  #blockOnError(work: () => void) {
    try {
      work()
    } catch (error) {
      this.#setBlocked(reasonWithCode(error))
    }
  }

  /**
   * Commits a small change over what a failed transaction left in the WAL. Returns
   * whether that worked.
   */
  #tryToRecover() {
    try {
      this.#guard.check()
      const tooLongReason = this.#checkpointer.limitWal(this.#arrivals.recent())
      if (tooLongReason !== undefined) {
        return false
      }
      // It has no meaning. SQLite follows the greatest number of 32 bits by 0.
      const { connection } = this.#guard
      const userVersion = readPragma(connection, 'user_version')
      connection.pragma(`user_version = ${userVersion + 1}`)
      this.#guard.check()
      return true
    } catch {
      return false
    }
  }

  /** Blocks the writer, or opens it again, and tells every thread. */
  #setBlocked(blockedBecause: string | undefined) {
    this.#blockedBecause = blockedBecause
    for (const sender of this.#arrivals.senders.keys()) {
      post(sender, { blockedBecause })
    }
  }
}

function post(sender: MessagePort, answer: WriterAnswer) {
  sender.postMessage(answer)
}
