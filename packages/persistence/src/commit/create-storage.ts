import { isDomainError } from '@plant-store/domain'
import { unavailable } from '../errors.ts'
import { createRepositories, type Read, type Runner, type Statements } from '../repositories/repositories.ts'
import { type Value, valuesOf } from '../repositories/statements.ts'
import { type PlantRow, textBytesOf } from '../schema/tables.ts'
import type { GroupCommitLimits, Storage, StorageObserver } from '../storage.ts'
import { createGroupCommit, defaultGroupCommitLimits, type GroupCommitOptions } from './group-commit.ts'
import { watchOutages } from './outage.ts'

/** What a storage needs of a database. Its rejections become DomainError `store-unavailable`. */
export interface StatementDatabase extends Pick<GroupCommitOptions, 'runGroup' | 'groupsMax'> {
  readonly statements: Statements
  read(name: Read[0], values: readonly Value[]): Promise<readonly object[]>
  /** Ends with the row at which the texts reach this size in UTF-8. */
  readPage(
    name: 'page' | 'pageOfTag',
    values: readonly Value[],
    textBytesMax: number,
  ): Promise<readonly PlantRow[]>
  /** Runs bulk changes, for which single ones need not wait. By default `runGroup`. */
  readonly runBulkGroup?: GroupCommitOptions['runGroup']
  /** The longest that anything may take, with its time in the queue. What is late may still be stored. */
  readonly timeoutMs?: number
  /** Rejects while the database cannot be read or written. */
  check(): Promise<void>
  /** To be called once, after the last change has an outcome. */
  close(): void | Promise<void>
}

export interface CreateStorageOptions extends Pick<StorageObserver, 'onStateChange'> {
  readonly limits?: GroupCommitLimits
}

/** Pending bulk changes. One list may have more. */
const bulkQueueChangesMax = 10_000

/** Returns a storage on a database: concurrent changes share a commit, and outages are reported. */
export function createStorage(
  { statements, runGroup, runBulkGroup = runGroup, groupsMax, timeoutMs, ...database }: StatementDatabase,
  { limits = defaultGroupCommitLimits, onStateChange }: CreateStorageOptions = {},
): Storage {
  const reporting = <Result>(work: Promise<Result>): Promise<Result> =>
    (timeoutMs === undefined ? work : inTime(timeoutMs, work)).catch(cause =>
      // Defined below, as it submits changes itself.
      outages.reportAndThrow(isDomainError(cause) ? cause : unavailable('the store is unavailable', cause)),
    )
  const single = createGroupCommit({ runGroup, groupsMax, limits })
  const bulk = createGroupCommit({
    runGroup: runBulkGroup,
    groupsMax,
    limits: { ...limits, queueChangesMax: bulkQueueChangesMax },
  })
  const runner: Runner = {
    changeOf: (name, given) => [name, ...valuesOf(statements.change[name], given)],
    async submit(change) {
      const [affectedRows] = await reporting(single.submit([change]))
      return affectedRows as number
    },
    submitAll: async changes => (changes.length === 0 ? [] : reporting(bulk.submit(changes))),
    read: (name, given) =>
      reporting(database.read(name, valuesOf(statements.read[name], given))) as Promise<never>,
    readPage: (name, given, textBytesMax) =>
      reporting(database.readPage(name, valuesOf(statements.read[name], given), textBytesMax)),
  }
  const check = () => reporting(database.check())
  const outages = watchOutages(async () => {
    await check()
    // Changes nothing, as no hash is empty.
    await runner.submit(runner.changeOf('markTokenUsed', { hash: '', usedAt: 0n }))
  }, onStateChange)

  return {
    ...createRepositories(runner),
    check,
    pending: () => single.pending() + bulk.pending(),
    async [Symbol.asyncDispose]() {
      outages.end()
      await Promise.all([single.drain(), bulk.drain()])
      await database.close()
    },
  }
}

/** Rejects after this time. The work continues. */
async function inTime<Result>(timeoutMs: number, work: Promise<Result>): Promise<Result> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(unavailable('the store did not answer in time')), timeoutMs)
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Returns rows up to the one at which their texts reach this size in UTF-8. */
export function rowsWithin(textBytesMax: number, page: Iterable<PlantRow>): PlantRow[] {
  const rows: PlantRow[] = []
  let bytes = 0
  for (const row of page) {
    rows.push(row)
    bytes += textBytesOf(row)
    if (bytes >= textBytesMax) break
  }
  return rows
}
