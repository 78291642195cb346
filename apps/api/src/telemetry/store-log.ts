import type { StorageObserver } from '@plant-store/engine'
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
  #backupTimeReason: string | undefined

  constructor(logger: Logger, store: string) {
    this.#logger = logger.child({ store })
  }

  /** Why the store is failing, or `undefined` while it works. */
  get reason(): string | undefined {
    return this.#reason
  }

  /**
   * Returns what a thread that uses the store calls.
   *
   * @param thread its number, 0 for the main thread
   */
  observer(thread: number) {
    const logger = this.#logger
    return {
      onFailureChange: reason => this.#note(thread, reason),
      onCheckpointFailure(reason) {
        if (reason === undefined) {
          logger.info('the WAL can be copied to the database again')
        } else {
          logger.error({ reason }, 'the WAL cannot be copied to the database')
        }
      },
      onNewerVersion(version) {
        logger.warn(
          { version },
          'a newer release has migrated the store: stop this server, which would not start again',
        )
      },
      onServerWarning: warning => logger.warn({ warning }, 'the database server warns'),
    } satisfies StorageObserver
  }

  /** @param reason why the store fails, or `undefined` if it works again */
  #note(thread: number, reason: string | undefined) {
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

  #recover(thread: number) {
    const wasFailing = this.#failingThreads.delete(thread)
    if (wasFailing && this.#failingThreads.size === 0) {
      this.#loggedReasons.clear()
      this.#reason = undefined
      this.#logger.info('the store has recovered')
    }
  }

  /** @param reason why the time of the last backup cannot be read, if so */
  noteUnreadBackupTime(reason: string | undefined): void {
    if (reason !== undefined && reason !== this.#backupTimeReason) {
      this.#logger.warn(reason)
    }
    this.#backupTimeReason = reason
  }
}
