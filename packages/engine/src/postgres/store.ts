import { compileEntities, type Entities } from '../compile-entities.ts'
import { NoStoreError } from '../errors.ts'
import { schemaVersionOf } from '../migrations.ts'
import { contentsOf, type ReadTransaction } from '../snapshot.ts'
import { postgresDialect } from '../statements/dialect.ts'
import type {
  EngineOptions,
  MainStorage,
  PostgresHandle,
  PostgresOptions,
  StoreContent,
} from '../types.ts'
import { ConnectionPool } from './connection-pool.ts'
import { attachPostgres } from './driver.ts'
import { findStore, migratePostgres, planPostgres } from './migrate.ts'
import { limitWarnings } from './server-warnings.ts'

/** No client waits for a read of a whole table, and counting one takes one statement. */
const readTimeoutMs = 3_600_000

/** Returns what can be done with a store that is not open. */
export function postgresStore(
  location: Pick<PostgresOptions, 'hosts' | 'poolMode'>,
  content: StoreContent,
) {
  const { entities } = content
  const server: PostgresOptions = { ...location, timeoutMs: 5_000 }

  return {
    async open({
      timeoutMs = server.timeoutMs,
      readConnectionsMax = 4,
      queueChangesMax,
      migrates = false,
      ...observer
    }: EngineOptions): Promise<MainStorage> {
      const options = { ...server, timeoutMs }
      const onWarning = limitWarnings(observer.onServerWarning)
      const found = await migratePostgres(options, entities, migrates, onWarning)

      const handle: PostgresHandle = {
        kind: 'postgres',
        server: { ...options, schema: found.schema },
        readConnectionsMax,
        queueChangesMax,
      }
      return {
        ...attachPostgres(handle, content, observer, onWarning),
        versionBefore: found.versionBefore,
        schemaVersion: schemaVersionOf(entities),
        share: () => handle,
      }
    },
    plan: () => planPostgres(server, entities),
    read: () => readPostgres(server, entities),
    async inspect() {
      await using reading = await readPostgres(server, entities)
      return await contentsOf(entities, reading)
    },
  }
}

async function readPostgres(
  server: PostgresOptions,
  entities: Entities,
): Promise<ReadTransaction> {
  await using opening = new AsyncDisposableStack()
  const patient = { ...server, statementTimeoutMs: readTimeoutMs, mayBeReadOnly: true }
  const pool = opening.use(new ConnectionPool(patient, 1))
  const connection = opening.use(
    await pool.begin('isolation level repeatable read read only'),
  )
  const { versionBefore: schemaVersion } = await findStore(connection, entities)
  if (schemaVersion === undefined) {
    throw new NoStoreError('it is empty')
  }

  const open = opening.move()
  return {
    schemaVersion,
    compiled: compileEntities(entities, postgresDialect),
    async query(sql, parameters = []) {
      const { rows } = await connection.ask(sql, [...parameters])
      return rows
    },
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}
