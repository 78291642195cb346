import { DomainError, isDomainError } from '@plant-store/domain'
import type pg from 'pg'
import { type Change, createGroupCommit } from '../group-commit.ts'
import { noChange, watchOutages } from '../outage.ts'
import { createRepositories, type StatementRunner } from '../repositories.ts'
import type { Statements } from '../shared-statements.ts'
import type { CommitObserver, Engine, SharedPostgres, StateObserver, Storage } from '../storage.ts'
import { plantColumns } from '../tables.ts'
import { openPostgresArchive } from './archive.ts'
import { createReconnectingConnection, retrying, transact } from './connection.ts'
import { migratePostgres } from './migrate.ts'
import { inspectPostgres, openPostgresSnapshot } from './snapshot.ts'
import { statements } from './statements.ts'
import { runTransaction } from './transaction.ts'

/** Reads that may be under way; past it, `store-busy`. */
const readsMax = 10_000

/** @param timeoutMs of the archive, the snapshot and the inspection */
export function createPostgresEngine(hosts: readonly string[], timeoutMs: number): Engine {
  const server = { hosts, timeoutMs }
  return {
    async open({ limits, timeoutMs, readConnectionsMax }, observer) {
      const shared: SharedPostgres = {
        kind: 'hosts',
        server: { hosts, timeoutMs },
        readConnectionsMax,
        limits,
      }
      await migratePostgres(shared.server)
      return { ...attachPostgres(shared, observer), share: () => shared }
    },
    archive: () => openPostgresArchive(server),
    snapshot: () => openPostgresSnapshot(server),
    inspect: () => inspectPostgres(server),
  }
}

/**
 * One transaction is under way at a time, and so changes of one plant take effect in the order they were made in: one
 * that the server takes back, and that is tried again, would be overtaken by the next.
 */
export function attachPostgres(
  { server, readConnectionsMax, limits }: SharedPostgres,
  { onCommit = () => {}, onStateChange }: CommitObserver & StateObserver,
): Storage {
  const { timeoutMs } = server
  const writer = createReconnectingConnection(server)
  const readers = Array.from({ length: readConnectionsMax }, () => createReconnectingConnection(server))

  const groupCommit = createGroupCommit({
    async runTransaction(batch) {
      const begun = performance.now()
      const attempt = () => writer.use(client => runTransaction(client, batch))
      const affectedRows = await retrying(timeoutMs, attempt)
      onCommit({ changes: batch.length, ms: performance.now() - begun })
      return affectedRows
    },
    transactionsMax: 1,
    limits,
  })
  const submit = (change: Change) => answering(timeoutMs, groupCommit.submit(change)).catch(outages.failed)

  const leastBusy = () => readers.reduce((least, each) => (each.inFlight < least.inFlight ? each : least))

  const read: StatementRunner['read'] = async <Row extends object>(
    name: keyof Statements['read'],
    ...values: unknown[]
  ) => {
    const reader = leastBusy()
    if (reader.inFlight >= readsMax / readers.length) {
      throw new DomainError('store-busy', 'too many reads are waiting')
    }
    const query = { name, text: statements.read[name], values }
    const attempt = () =>
      reader.use(async client => {
        // Without the detour, which costs a read a twentieth.
        if (!client.isPooled) return (await client.query<Row>(query)).rows
        const [result] = await transact<Row>(client, [query])
        return result?.rows ?? []
      })
    return answering(timeoutMs, retrying(timeoutMs, attempt)).catch(outages.failed)
  }

  const readPage: StatementRunner['readPage'] = (name, textBytesMax, ...values) =>
    read(name, ...values, textBytesMax)

  const check = async () => {
    await answering(
      timeoutMs,
      leastBusy().use(client => transact(client, changesOfNoRows)),
    ).catch(outages.failed)
  }
  const outages = watchOutages(async () => {
    await check()
    await submit(noChange)
  }, onStateChange)

  return {
    ...createRepositories({ submit, read, readPage }),
    check,
    pending: groupCommit.pending,
    async [Symbol.asyncDispose]() {
      outages.end()
      await groupCommit.drain()
      await Promise.all([writer, ...readers].map(each => each.close()))
    },
  }
}

/** What requests do, to no rows: it needs the same rights, and a server that takes writes. */
const changesOfNoRows: readonly pg.QueryConfig[] = [
  { name: 'savePlant', text: statements.change.savePlant, values: plantColumns.map(() => []) },
  { name: 'removePlant', text: statements.change.removePlant, values: [[]] },
  { name: 'markTokenUsed', text: statements.change.markTokenUsed, values: [[], []] },
]

/**
 * Bounds how long anybody waits. What takes longer goes on, within limits of its own: of a change it is then not known
 * whether it was kept.
 *
 * @throws DomainError `store-unavailable` for whatever isn't a DomainError already
 */
function answering<Result>(timeoutMs: number, work: Promise<Result>): Promise<Result> {
  const { promise, resolve, reject } = Promise.withResolvers<Result>()
  const timer = setTimeout(
    () => reject(new DomainError('store-unavailable', 'the store did not answer in time')),
    timeoutMs,
  )
  work
    .then(resolve, cause => {
      reject(
        isDomainError(cause)
          ? cause
          : new DomainError('store-unavailable', 'the store can not be used', { cause }),
      )
    })
    .finally(() => clearTimeout(timer))
  return promise
}
