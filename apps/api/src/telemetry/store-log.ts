import type { Logger } from 'pino'

/**
 * Logs once, for all threads, that the store fails for a reason, and that it works again.
 * It is failing from the first thread that reports a failure until every such thread has
 * reported that it works.
 */
export class StoreLog {
  /** Names the store in each line. */
  readonly #logger: Logger
  /** The threads whose use of the store fails. Empty while it works. */
  readonly #failingThreads = new Set<number>()
  /** The reasons that were logged since the store worked. */
  readonly #loggedReasons = new Set<string>()
  /** The latest reason, or `undefined` while the store works. */
  #reason: string | undefined
  /** Why the time of the last backup could not be read, as the log has it. */
  #lastBackupReason: string | undefined

  constructor(logger: Logger, store: string) {
    this.#logger = logger.child({ store })
  }

  /** Why the store is failing, or `undefined` while it works. */
  get reason(): string | undefined {
    return this.#reason
  }

  /**
   * @param thread the number of the thread that uses the store, 0 for the main thread
   * @param reason why it fails, or `undefined` if it works again
   */
  note(thread: number, reason: string | undefined): void {
    if (reason === undefined) {
      this.#recover(thread)
      return
    }
    if (!this.#loggedReasons.has(reason)) {
      this.#logger.error({ reason }, 'the store is failing')
    }
    this.#failingThreads.add(thread)
    this.#loggedReasons.add(reason)
    this.#reason = reason
  }

  #recover(thread: number): void {
    const wasFailing = this.#failingThreads.delete(thread)
    if (wasFailing && this.#failingThreads.size === 0) {
      this.#loggedReasons.clear()
      this.#reason = undefined
      this.#logger.info('the store has recovered')
    }
  }

  /**
   * @param reason why the WAL cannot be copied, or `undefined` once it can again. Changes
   *   succeed until the WAL is full
   */
  noteCheckpoint(reason: string | undefined): void {
    if (reason === undefined) {
      this.#logger.info('the WAL can be copied to the database again')
    } else {
      this.#logger.error({ reason }, 'the WAL cannot be copied to the database')
    }
  }

  /** @param reason why the time of the last backup cannot be read, if so */
  noteLastBackup(reason: string | undefined): void {
    if (reason !== undefined && reason !== this.#lastBackupReason) {
      this.#logger.warn(reason)
    }
    this.#lastBackupReason = reason
  }

  /** @param version that a newer release has given the open store */
  noteNewerVersion(version: number): void {
    this.#logger.warn(
      { version },
      'a newer release has migrated the store: stop this server, which would not start again',
    )
  }

  /** Logs a warning of PostgreSQL, such as one before it stops accepting changes. */
  noteWarning(warning: string): void {
    this.#logger.warn({ warning }, 'the database server warns')
  }
}
