import { DomainError, isDomainError } from '@plant-store/domain'
import type pg from 'pg'
import { createGroupCommit } from '../group-commit.ts'
import { watchOutages } from '../outage.ts'
import { createRepositories, type StatementRunner } from '../repositories.ts'
import type { Statements } from '../shared-statements.ts'
import type { Engine, SharedPostgres, Storage, StorageObserver } from '../storage.ts'
import { rowColumns } from '../tables.ts'
import { createReconnectingConnection } from './connection.ts'
import { migratePostgres } from './migrate.ts'
import { openPostgresSnapshot } from './snapshot.ts'
import { statements } from './statements.ts'
import { retrying, runTransaction, transact } from './transaction.ts'

/** Reads in progress. Beyond it, `store-busy`. */
const readsMax = 10_000

/** @param bulkTimeoutMs for the snapshot and the inspection */
export function createPostgresEngine(hosts: readonly string[], bulkTimeoutMs: number): Engine {
  const bulk = { hosts, timeoutMs: bulkTimeoutMs }
  return {
    async open({ limits, timeoutMs, readConnectionsMax, ...observer }) {
      const server = { hosts, timeoutMs }
      const shared: SharedPostgres = { kind: 'postgres', server, readConnectionsMax, limits }
      const versionBefore = await migratePostgres(server)
      return { ...attachPostgres(shared, observer), versionBefore, share: () => shared }
    },
    snapshot: () => openPostgresSnapshot(bulk),
    async inspect() {
      await using snapshot = await openPostgresSnapshot(bulk)
      const { schemaVersion, count, tokens } = snapshot
      return { schemaVersion, plants: count, tokens }
    },
  }
}

/**
 * One transaction runs at a time, so that changes of one plant take effect in order. Otherwise a later change could
 * overtake one that the server rolled back and that is retried.
 */
export function attachPostgres(
  { server, readConnectionsMax, limits }: SharedPostgres,
  { onCommit = () => {}, onStateChange }: StorageObserver,
): Storage {
  const { timeoutMs } = server
  const writer = createReconnectingConnection(server)
  const readers = Array.from({ length: readConnectionsMax }, () => createReconnectingConnection(server))
  const leastBusy = () => readers.reduce((least, each) => (each.inFlight < least.inFlight ? each : least))
  const answering = <Result>(work: Promise<Result>) => inTime(timeoutMs, work).catch(outages.reportAndThrow)

  const groupCommit = createGroupCommit({
    async runTransaction(batch) {
      const begun = performance.now()
      const attempt = () => writer.use(client => runTransaction(client, batch))
      const affectedRows = await retrying(timeoutMs, attempt)
      onCommit({ changes: batch.length, ms: performance.now() - begun })
      return affectedRows
    },
    batchesMax: 1,
    limits,
  })
  const submit: StatementRunner['submit'] = change => answering(groupCommit.submit(change))
  const submitAll: StatementRunner['submitAll'] = changes => answering(groupCommit.submitAll(changes))

  const read: StatementRunner['read'] = async <Row extends object>(
    name: keyof Statements['read'],
    ...values: unknown[]
  ) => {
    const reader = leastBusy()
    if (reader.inFlight >= readsMax / readers.length) {
      throw new DomainError('store-busy', 'too many reads are pending')
    }
    const query = { name, text: statements.read[name], values }
    const attempt = () =>
      reader.use(async client => {
        // Skipping the queue saves a read a twentieth of its time.
        if (!client.isPooled) return (await client.query<Row>(query)).rows
        const [rows = []] = await transact<Row>(client, [query])
        return rows
      })
    return answering(retrying(timeoutMs, attempt))
  }

  const check = async () => {
    await answering(leastBusy().use(client => transact(client, changesOfNoRows)))
  }
  const outages = watchOutages(check, submit, onStateChange)

  return {
    ...createRepositories({
      submit,
      submitAll,
      read,
      readPage: (name, textBytesMax, ...values) => read(name, ...values, textBytesMax),
    }),
    check,
    pending: groupCommit.pending,
    async [Symbol.asyncDispose]() {
      outages.end()
      await groupCommit.drain()
      await Promise.all([writer, ...readers].map(each => each.close()))
    },
  }
}

/** The statements of requests on no rows: the check needs the same rights and a writable server. */
const changesOfNoRows: readonly pg.QueryConfig[] = [
  { text: statements.change.savePlant, values: rowColumns.map(() => []) },
  { text: statements.change.removePlant, values: [[]] },
  { text: statements.change.markTokenUsed, values: [[], []] },
]

/** Rejects with a DomainError after this time. The work continues, and a late change may be kept. */
async function inTime<Result>(timeoutMs: number, work: Promise<Result>): Promise<Result> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => reject(new DomainError('store-unavailable', 'the store did not answer in time')),
    timeoutMs,
  )
  try {
    return await Promise.race([work, late])
  } catch (cause) {
    if (isDomainError(cause)) throw cause
    throw new DomainError('store-unavailable', 'the store is unavailable', { cause })
  } finally {
    clearTimeout(timer)
  }
}
