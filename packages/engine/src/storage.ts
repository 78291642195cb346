import assert from 'node:assert/strict'
import type { CompiledEntities } from './compile-entities.ts'
import { StoreError, unavailableError } from './errors.ts'
import { GroupQueue, type GroupQueueOptions } from './group-queue.ts'
import { OutageWatch } from './outage.ts'
import type { Runner } from './runner.ts'
import {
  type Change,
  type ChangeStatement,
  changeOf,
  type ReadStatement,
} from './statements/statement.ts'
import type { Storage, StorageObserver, StoreContent } from './types.ts'

type RunGroup = GroupQueueOptions['runGroup']

/**
 * Runs the statements of a storage on a database. Its rejections become StoreError
 * `store-unavailable`, unless they are one.
 */
export interface DatabaseDriver {
  readonly compiled: CompiledEntities
  /** Makes the changes of a group, and resolves to the affected rows of each. */
  readonly runGroup: RunGroup
  /** How many groups of one queue may run at the same time. */
  readonly groupsMax: number
  /** Runs bulk changes, for which single ones need not wait. By default `runGroup`. */
  readonly runBulkGroup?: RunGroup
  /**
   * The longest that anything may take, with its time in the queue. What is late may
   * still be stored.
   */
  readonly timeoutMs?: number
  read(statement: ReadStatement, values: object): Promise<readonly object[]>
  /** Rejects while the database cannot be read or written. */
  check(): Promise<void>
  /**
   * Reports failures of the database that happen while no change is running, so that such
   * an outage is noticed, too.
   */
  watchFailures?(report: (error: StoreError) => void): void
  /** Called once, after the last change has an outcome. */
  close(): void | Promise<void>
}

interface CreateOptions extends StorageObserver {
  readonly queueChangesMax?: number | undefined
  readonly translateError: StoreContent['translateError']
}

/**
 * Returns a storage on a database. Concurrent changes share a commit, and outages are
 * reported.
 */
export function createStorage(driver: DatabaseDriver, options: CreateOptions): Storage {
  const { queueChangesMax, translateError, onFailureChange, onNewerVersion } = options
  const { compiled, runGroup, runBulkGroup = runGroup, groupsMax, timeoutMs } = driver
  const singleQueue = new GroupQueue({ runGroup, groupsMax, queueChangesMax })
  const bulkQueue = new GroupQueue({ runGroup: runBulkGroup, groupsMax })

  function bind(statement: ChangeStatement<never>, values: object): Change {
    const name = compiled.names.get(statement)
    assert(name !== undefined, 'it is a statement of these entities')
    return changeOf(name, statement, values)
  }

  function inTime<Result>(work: Promise<Result>): Promise<Result> {
    return timeoutMs === undefined ? work : rejectLate(timeoutMs, work)
  }

  const outages = new OutageWatch(async () => {
    try {
      await inTime(driver.check())
      await inTime(singleQueue.submit([bind(compiled.probeWrite, {})]))
    } catch (cause) {
      throw toStoreError(cause)
    }
  }, onFailureChange)
  driver.watchFailures?.(error => outages.report(error))

  const versionTimer = onNewerVersion && watchVersion(driver, onNewerVersion)

  function fail(cause: unknown): never {
    const error = toStoreError(cause)
    outages.report(error)
    throw translateError(error)
  }

  const runner: Runner = {
    bind,
    submit: (statement, values) =>
      inTime(singleQueue.submit([bind(statement, values)])).then(onlyOne, fail),
    submitAll: async changes =>
      changes.length === 0 ? [] : inTime(bulkQueue.submit(changes)).catch(fail),
    // The databases return rows as the statements declare them. The contracts of the
    // ports prove it.
    read: (statement, values) =>
      inTime(driver.read(statement, values)).catch(fail) as Promise<never>,
  }

  return {
    ...compiled.ports(runner),
    check: () => inTime(driver.check()).catch(fail),
    pending: () => singleQueue.pending() + bulkQueue.pending(),
    async [Symbol.asyncDispose]() {
      outages.end()
      clearInterval(versionTimer)
      await Promise.all([singleQueue.drain(), bulkQueue.drain()])
      await driver.close()
    },
  }
}

/** How often the schema version of an open store is read. */
const versionEveryMs = 10_000

/**
 * Reports once that a newer release has migrated the open store. This release goes on,
 * and would refuse the store at its next start.
 */
function watchVersion(
  { compiled, read }: DatabaseDriver,
  report: (version: number) => void,
): NodeJS.Timeout {
  const timer = setInterval(async () => {
    // A store that cannot be read is reported as an outage.
    const [row = {}] = await read(compiled.probeRead, {}).catch(() => [])
    const [version] = Object.values(row)
    if (version > compiled.schemaVersion) {
      clearInterval(timer)
      report(Number(version))
    }
  }, versionEveryMs)
  return timer.unref()
}

/** Returns the affected rows of a single change. */
function onlyOne([affectedRows]: readonly number[]) {
  assert(affectedRows !== undefined, 'the group has an outcome for its change')
  return affectedRows
}

function toStoreError(cause: unknown) {
  if (cause instanceof StoreError) {
    return cause
  }
  const error = cause instanceof Error ? cause : new Error(String(cause))
  return unavailableError('the store is unavailable', error)
}

/** Rejects after this time. The work continues. */
function rejectLate<Result>(timeoutMs: number, work: Promise<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(unavailableError('the store did not answer in time')),
      timeoutMs,
    )
    work.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
