import { createStorage } from '../commit/create-storage.ts'
import { createGroupCommit, defaultGroupCommitLimits } from '../commit/group-commit.ts'
import { NoStoreError } from '../errors.ts'
import { countsIn, type ReadTransaction } from '../repositories/reader.ts'
import type { Read } from '../repositories/repositories.ts'
import { schemaVersion } from '../schema/migrations.ts'
import type { PlantRow } from '../schema/tables.ts'
import type { EngineOptions, PostgresOptions, SharedPostgres, Storage, StorageObserver } from '../storage.ts'
import { createPool, retrying } from './connection.ts'
import { findVersionOn, migratePostgres } from './migrate.ts'
import { noChanges, runTransaction, statements } from './statements.ts'

/** Reads are spread over the connections. */
const readLimits = { ...defaultGroupCommitLimits, transactionChangesMax: 16 }

/** @param bulk for reading and inspecting it */
export function createPostgresEngine(bulk: PostgresOptions) {
  return {
    async open({ limits, timeoutMs, readConnectionsMax, ...observer }: EngineOptions) {
      const server = { ...bulk, timeoutMs }
      const shared: SharedPostgres = { kind: 'postgres', server, readConnectionsMax, limits }
      const versionBefore = await migratePostgres(server)
      return { ...attachPostgres(shared, observer), versionBefore, schemaVersion, share: () => shared }
    },
    read: () => readPostgres(bulk),
    async inspect() {
      await using reading = await readPostgres(bulk)
      return { schemaVersion: reading.schemaVersion, ...(await countsIn(reading)) }
    },
  }
}

/** No client waits here, and counting a whole table takes one statement. */
const patientTimeoutMs = 3_600_000

async function readPostgres(options: PostgresOptions): Promise<ReadTransaction> {
  await using opening = new AsyncDisposableStack()
  const pool = opening.use(createPool({ ...options, statementTimeoutMs: patientTimeoutMs }, 1))
  const client = opening.use(await pool.begin('isolation level repeatable read read only'))
  const schemaVersion = await findVersionOn(client)
  if (schemaVersion === undefined) throw new NoStoreError('it is empty')
  const open = opening.move()
  return {
    schemaVersion,
    statements: statements.read,
    query: async (sql, parameters = []) => (await client.query<object>(sql, [...parameters])).rows,
    [Symbol.asyncDispose]: () => open.disposeAsync(),
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
  // Of their own, so that changes wait for no read.
  const changing = createPool(server, 1)
  const reading = createPool(server, readConnectionsMax)
  // Reads of one turn share a round trip. One query a packet would cost 2.5 times the processor time.
  const reads = createGroupCommit<Read, readonly object[]>({
    async runGroup(group) {
      const queries = group.map(([name, ...values]) => ({ name, text: statements.read[name].sql, values }))
      return (await retrying(timeoutMs, () => reading.run(queries, true))).map(({ rows }) => rows)
    },
    groupsMax: readConnectionsMax,
    limits: readLimits,
  })
  const ask = async <Row extends object>(read: Read) => {
    const [rows] = await reads.submit([read])
    return rows as readonly Row[]
  }

  return createStorage(
    {
      statements,
      timeoutMs,
      async runGroup(group) {
        const begun = performance.now()
        const affectedRows = await retrying(timeoutMs, () => runTransaction(changing, group))
        onCommit({ changes: group.length, ms: performance.now() - begun })
        return affectedRows
      },
      groupsMax: 1,
      read: (name, values) => ask([name, ...values]),
      readPage: (name, values, textBytesMax) => ask<PlantRow>([name, ...values, textBytesMax]),
      async check() {
        await Promise.all([ask(['plant', 0n]), changing.run(noChanges)])
      },
      async close() {
        await reads.drain()
        await Promise.all([changing, reading].map(pool => pool[Symbol.asyncDispose]()))
      },
    },
    { limits, onStateChange },
  )
}
