import type { CompiledEntities, Entities, Runner } from './entity.ts'
import { StoreError, unavailable } from './errors.ts'
import { GroupQueue, type GroupQueueOptions } from './group-queue.ts'
import { OutageWatch } from './outage.ts'
import type {
  Change,
  ChangeStatement,
  ReadStatement,
  Value,
} from './statements/statement.ts'
import type { Storage, StorageObserver } from './types.ts'

/** What runs the statements of a storage on a database. Its rejections become StoreError `store-unavailable`. */
export interface DatabaseDriver<Entered extends Entities = Entities>
  extends Pick<GroupQueueOptions, 'runGroup' | 'groupsMax'> {
  readonly compiled: CompiledEntities<Entered>
  read(statement: ReadStatement, given: object): Promise<readonly object[]>
  /** Runs bulk changes, for which single ones need not wait. By default `runGroup`. */
  readonly runBulkGroup?: GroupQueueOptions['runGroup']
  /** The longest that anything may take, with its time in the queue. What is late may still be stored. */
  readonly timeoutMs?: number
  /** Rejects while the database cannot be read or written. */
  check(): Promise<void>
  /** Reports errors of which no change is told, as none is made. */
  onFailure?(report: (error: StoreError) => void): void
  /** To be called once, after the last change has an outcome. */
  close(): void | Promise<void>
}

/** Returns a storage on a database: concurrent changes share a commit, and outages are reported. */
export function createStorage<Entered extends Entities>(
  {
    compiled,
    runGroup,
    runBulkGroup = runGroup,
    groupsMax,
    timeoutMs,
    ...database
  }: DatabaseDriver<Entered>,
  {
    queueChangesMax,
    onFailureChange,
    translateError = error => error,
  }: { readonly queueChangesMax?: number | undefined } & StorageObserver = {},
): Storage<Entered> {
  const { names } = compiled
  const single = new GroupQueue({ runGroup, groupsMax, queueChangesMax })
  const bulk = new GroupQueue({ runGroup: runBulkGroup, groupsMax })
  const bind = (statement: ChangeStatement<never>, given: object): Change => {
    const change: [string, ...Value[]] = [names.get(statement) as string]
    // The compiler has compared the members with the statement's parameters.
    for (const name of statement.parameters) {
      change.push((given as Record<string, Value>)[name] as Value)
    }
    return change
  }
  const inTime = <Result>(work: Promise<Result>) =>
    timeoutMs === undefined ? work : rejectLate(timeoutMs, work)

  const outages = new OutageWatch(async () => {
    try {
      await inTime(database.check())
      await inTime(single.submit([bind(compiled.probeWrite, {})]))
    } catch (cause) {
      throw toStoreError(cause)
    }
  }, onFailureChange)
  database.onFailure?.(error => outages.report(error))
  const fail = (cause: unknown): never => {
    const error = toStoreError(cause)
    outages.report(error)
    throw translateError(error)
  }

  const runner: Runner = {
    bind,
    submit: (statement, given) =>
      inTime(single.submit([bind(statement, given)])).then(onlyOne, fail),
    submitAll: async changes =>
      changes.length === 0 ? [] : inTime(bulk.submit(changes)).catch(fail),
    // The databases return rows as the statements declare them, which the contracts of the ports prove.
    read: (statement, given) =>
      inTime(database.read(statement, given)).catch(fail) as Promise<never>,
  }

  return {
    ...compiled.ports(runner),
    check: () => inTime(database.check()).catch(fail),
    pending: () => single.pending() + bulk.pending(),
    async [Symbol.asyncDispose]() {
      outages.end()
      await Promise.all([single.drain(), bulk.drain()])
      await database.close()
    },
  }
}

/** Returns the affected rows of a single change. */
const onlyOne = ([affectedRows]: readonly number[]) => affectedRows as number

function toStoreError(cause: unknown): StoreError {
  return cause instanceof StoreError
    ? cause
    : unavailable('the store is unavailable', cause as Error)
}

/** Rejects after this time. The work continues. */
async function rejectLate<Result>(
  timeoutMs: number,
  work: Promise<Result>,
): Promise<Result> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => reject(unavailable('the store did not answer in time')),
    timeoutMs,
  )
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
