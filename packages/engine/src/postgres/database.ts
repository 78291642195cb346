import { createStorage } from '../create-storage.ts'
import { compileEntities, type Entities } from '../entity.ts'
import { NoStoreError } from '../errors.ts'
import { GroupQueue } from '../group-queue.ts'
import { schemaVersionOf } from '../migrations.ts'
import { countsIn, type ReadTransaction } from '../reader.ts'
import { postgresDialect } from '../statements/dialect.ts'
import { type Statement, type Value, valuesOf } from '../statements/statement.ts'
import type {
  EngineOptions,
  PostgresHandle,
  PostgresOptions,
  Storage,
  StorageObserver,
} from '../storage.ts'
import { ConnectionPool } from './connection-pool.ts'
import { findStore, migratePostgres, planPostgres } from './migrate.ts'
import { retrying } from './retrying.ts'
import { changeRights, missingRightsQuery, refuseMissing } from './rights.ts'
import { limitWarnings } from './server-warnings.ts'
import { runGroup } from './steps.ts'

/** Reads of a group, which are few, so that they are spread over the connections. */
const readsMax = 16
const defaultTimeoutMs = 5_000

export function postgresStore<Entered extends Entities>(
  location: Pick<PostgresOptions, 'hosts' | 'poolMode'>,
  entities: Entered,
) {
  const bulk = { ...location, timeoutMs: defaultTimeoutMs }
  return {
    async open({
      timeoutMs = defaultTimeoutMs,
      readConnectionsMax,
      queueChangesMax,
      ...observer
    }: EngineOptions) {
      const server = { ...location, timeoutMs }
      const onWarning = limitWarnings(observer.onServerWarning ?? (() => {}))
      const found = await migratePostgres(server, entities, onWarning)
      const shared: PostgresHandle = {
        kind: 'postgres',
        server: { ...server, schema: found.schema },
        readConnectionsMax,
        queueChangesMax,
      }
      const storage = attachPostgres(shared, entities, observer)
      return {
        ...storage,
        versionBefore: found.version,
        schemaVersion: schemaVersionOf(entities),
        share: () => shared,
      }
    },
    async plan() {
      const { schema, version, otherSchemas } = await planPostgres(bulk, entities)
      return { versionBefore: version, schema, otherSchemas }
    },
    read: () => readPostgres(bulk, entities),
    async inspect() {
      await using reading = await readPostgres(bulk, entities)
      return {
        schemaVersion: reading.schemaVersion,
        counts: await countsIn(entities, reading),
      }
    },
  }
}

/** No client waits here, and counting a whole table takes one statement. */
const patientTimeoutMs = 3_600_000

async function readPostgres<Entered extends Entities>(
  options: PostgresOptions,
  entities: Entered,
): Promise<ReadTransaction<Entered>> {
  await using opening = new AsyncDisposableStack()
  const pool = opening.use(
    new ConnectionPool({ ...options, statementTimeoutMs: patientTimeoutMs }, 1),
  )
  const connection = opening.use(
    await pool.begin('isolation level repeatable read read only'),
  )
  const { version: schemaVersion } = await findStore(connection, entities)
  if (schemaVersion === undefined) {
    throw new NoStoreError('it is empty')
  }
  const open = opening.move()
  return {
    schemaVersion,
    compiled: compileEntities(entities, postgresDialect),
    query: async (sql, parameters = []) =>
      (await connection.query<object>(sql, parameters)).rows,
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}

type Ask = readonly [statement: Statement, ...values: Value[]]

/**
 * One transaction runs at a time, so that changes of one row take effect in order. Otherwise a later change could
 * overtake one that the server rolled back and that is retried.
 */
export function attachPostgres<Entered extends Entities>(
  { server, readConnectionsMax = 4, queueChangesMax }: PostgresHandle,
  entities: Entered,
  { onCommit = () => {}, onServerWarning = () => {}, ...observer }: StorageObserver,
): Storage<Entered> {
  const { timeoutMs } = server
  const compiled = compileEntities(entities, postgresDialect)
  const queryOf = (statement: Statement, values: Value[]) => ({
    name: compiled.names.get(statement) as string,
    text: statement.sql,
    values,
  })
  // Of their own, so that changes wait for no read.
  const onWarning = limitWarnings(onServerWarning)
  const changing = new ConnectionPool(server, 1, onWarning)
  const reading = new ConnectionPool(server, readConnectionsMax, onWarning)
  // Reads of one turn share a round trip. One query a packet would cost 2.5 times the processor time.
  const reads = new GroupQueue<Ask, readonly object[]>({
    async runGroup(group) {
      const queries = group.map(([statement, ...values]) => queryOf(statement, values))
      return (await retrying(timeoutMs, () => reading.run(queries, true))).map(
        ({ rows }) => rows,
      )
    },
    groupsMax: readConnectionsMax,
    groupChangesMax: readsMax,
  })
  const read = async (statement: Statement, given: object) => {
    const [rows] = await reads.submit([[statement, ...valuesOf(statement, given)]])
    return rows as readonly object[]
  }
  const checks = [
    { text: missingRightsQuery, values: [compiled.tables, changeRights] },
    queryOf(compiled.probeWrite, []),
  ]

  return createStorage(
    {
      compiled,
      timeoutMs,
      async runGroup(group) {
        const begun = performance.now()
        const affectedRows = await retrying(timeoutMs, () =>
          runGroup(changing, compiled, group),
        )
        onCommit({ changes: group.length, ms: performance.now() - begun })
        return affectedRows
      },
      groupsMax: 1,
      read,
      async check() {
        const [[rights]] = await Promise.all([
          changing.run(checks),
          read(compiled.probeRead, {}),
        ])
        refuseMissing(rights?.rows ?? [])
      },
      async close() {
        await reads.drain()
        await Promise.all([changing, reading].map(pool => pool[Symbol.asyncDispose]()))
      },
    },
    { queueChangesMax, ...observer },
  )
}
