import { EmptyStoreError, type ReadTransaction, type ServerOptions } from '../storage.ts'
import { createPool } from './connection.ts'
import { findVersionOn } from './migrate.ts'
import { statements } from './statements.ts'

/** No client waits here, and counting a whole table takes one statement. */
const patientTimeoutMs = 3_600_000

/** @throws EmptyStoreError, or Error if the database has no store, or a newer one */
export async function readPostgres(options: ServerOptions): Promise<ReadTransaction> {
  await using opening = new AsyncDisposableStack()
  const pool = opening.use(createPool({ ...options, statementTimeoutMs: patientTimeoutMs }, 1))
  const reader = opening.use(await pool.begin('isolation level repeatable read read only'))
  const schemaVersion = await findVersionOn(reader)
  if (schemaVersion === undefined) throw new EmptyStoreError()
  const open = opening.move()
  return {
    schemaVersion,
    statements: statements.read,
    query: async (sql, parameters = []) => (await reader.query<object>(sql, [...parameters])).rows,
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}
