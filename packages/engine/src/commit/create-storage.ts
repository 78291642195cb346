import type { CompiledEntities, Entities, Runner } from '../entity.ts'
import { StoreError, unavailable } from '../errors.ts'
import { type ReadStatement, valuesOf } from '../statements/statement.ts'
import type { GroupCommitLimits, Storage, StorageObserver } from '../storage.ts'
import { createGroupCommit, defaultGroupCommitLimits, type GroupCommitOptions } from './group-commit.ts'
import { watchOutages } from './outage.ts'

/** What a storage needs of a database. Its rejections become StoreError `store-unavailable`. */
export interface StatementDatabase<Entered extends Entities = Entities>
  extends Pick<GroupCommitOptions, 'runGroup' | 'groupsMax'> {
  readonly compiled: CompiledEntities<Entered>
  read(statement: ReadStatement, given: object): Promise<readonly object[]>
  /** Runs bulk changes, for which single ones need not wait. By default `runGroup`. */
  readonly runBulkGroup?: GroupCommitOptions['runGroup']
  /** The longest that anything may take, with its time in the queue. What is late may still be stored. */
  readonly timeoutMs?: number
  /** Rejects while the database cannot be read or written. */
  check(): Promise<void>
  /** Reports errors of which no change is told, as none is made. */
  reportTo?(report: (error: StoreError) => void): void
  /** To be called once, after the last change has an outcome. */
  close(): void | Promise<void>
}

/** Pending bulk changes. One list may have more. */
const bulkQueueChangesMax = 10_000

/** Returns a storage on a database: concurrent changes share a commit, and outages are reported. */
export function createStorage<Entered extends Entities>(
  {
    compiled,
    runGroup,
    runBulkGroup = runGroup,
    groupsMax,
    timeoutMs,
    ...database
  }: StatementDatabase<Entered>,
  {
    limits = defaultGroupCommitLimits,
    onFailureChange,
    toError = error => error,
  }: { readonly limits?: GroupCommitLimits } & Omit<StorageObserver, 'onCommit'> = {},
): Storage<Entered> {
  const { names } = compiled
  const reporting = <Result>(work: Promise<Result>, thrown = toError): Promise<Result> =>
    (timeoutMs === undefined ? work : inTime(timeoutMs, work)).catch(cause => {
      const error = cause instanceof StoreError ? cause : unavailable('the store is unavailable', cause)
      // Defined below, as it submits changes itself.
      outages.report(error)
      throw thrown(error)
    })
  const single = createGroupCommit({ runGroup, groupsMax, limits })
  const bulk = createGroupCommit({
    runGroup: runBulkGroup,
    groupsMax,
    limits: { ...limits, queueChangesMax: bulkQueueChangesMax },
  })
  const runner: Runner = {
    bind: (statement, given) => [names.get(statement) as string, ...valuesOf(statement, given)],
    async submit(statement, given) {
      const [affectedRows] = await reporting(single.submit([runner.bind(statement, given)]))
      return affectedRows as number
    },
    submitAll: async changes => (changes.length === 0 ? [] : reporting(bulk.submit(changes))),
    // The databases return rows as the statements declare them, which the contracts of the ports prove.
    read: (statement, given) => reporting(database.read(statement, given)) as Promise<never>,
  }
  const outages = watchOutages(async () => {
    const itself = (error: StoreError) => error
    await reporting(database.check(), itself)
    await reporting(single.submit([runner.bind(compiled.probeWrite, {})]), itself)
  }, onFailureChange)
  database.reportTo?.(outages.report)

  return {
    ...compiled.ports(runner),
    check: () => reporting(database.check()),
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
