import { DomainError, isDomainError } from '@plant-store/domain'
import { createGroupCommit, defaultGroupCommitLimits, type GroupCommitOptions } from './group-commit.ts'
import { watchOutages } from './outage.ts'
import { createRepositories, type StatementRunner } from './repositories.ts'
import type { Storage, StorageObserver } from './storage.ts'
import { type PlantRow, textBytesOf } from './tables.ts'

/** What a storage needs of a database. Its rejections become DomainError `store-unavailable`. */
export interface StatementDatabase
  extends Pick<StatementRunner, 'read' | 'readPage'>,
    Pick<GroupCommitOptions, 'runTransaction' | 'batchesMax'> {
  /** Runs bulk changes, for which single ones need not wait. By default `runTransaction`. */
  readonly runBulk?: GroupCommitOptions['runTransaction']
  /** Rejects while the database cannot be read or written. */
  check(): Promise<void>
  /** To be called once, after the last change has an outcome. */
  close(): void | Promise<void>
}

export interface CreateStorageOptions extends Pick<StorageObserver, 'onStateChange'> {
  readonly limits?: GroupCommitOptions['limits']
}

/** Returns a storage on a database: concurrent changes share a commit, and outages are reported. */
export function createStorage(
  { runTransaction, runBulk, batchesMax, read, readPage, check, close }: StatementDatabase,
  { limits = defaultGroupCommitLimits, onStateChange }: CreateStorageOptions = {},
): Storage {
  // `outages` is defined below, as it submits changes itself.
  const reporting = <Result>(work: Promise<Result>): Promise<Result> =>
    work.catch(cause => outages.reportAndThrow(isDomainError(cause) ? cause : unusable(cause)))
  const commitWith = (run: GroupCommitOptions['runTransaction']) =>
    createGroupCommit({ runTransaction: batch => reporting(run(batch)), batchesMax, limits })
  const single = commitWith(runTransaction)
  const bulk = runBulk && commitWith(runBulk)
  const { submit } = single
  const { submitAll } = bulk ?? single
  const outages = watchOutages(() => reporting(check()), submit, onStateChange)

  return {
    ...createRepositories({
      submit,
      submitAll,
      read: (statement, ...parameters) => reporting(read(statement, ...parameters)),
      readPage: (statement, ...parameters) => reporting(readPage(statement, ...parameters)),
    }),
    check: () => reporting(check()),
    pending: () => single.pending() + (bulk?.pending() ?? 0),
    async [Symbol.asyncDispose]() {
      outages.end()
      await Promise.all([single.drain(), bulk?.drain()])
      await close()
    },
  }
}

function unusable(cause: unknown): DomainError {
  return new DomainError('store-unavailable', 'the store is unavailable', { cause })
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
