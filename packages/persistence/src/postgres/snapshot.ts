import { createSnapshot } from '../snapshot.ts'
import type { ServerOptions, StoreSnapshot } from '../storage.ts'
import { createPool } from './connection.ts'
import { findVersionOn } from './migrate.ts'

/** No client waits here, and counting a whole table takes one statement. */
const patientTimeoutMs = 3_600_000

/** @throws Error if there is no store, or a newer one */
export async function openPostgresSnapshot(options: ServerOptions): Promise<StoreSnapshot> {
  await using opening = new AsyncDisposableStack()
  const pool = opening.use(createPool({ ...options, statementTimeoutMs: patientTimeoutMs }, 1))
  const reader = opening.use(await pool.begin('isolation level repeatable read read only'))
  const schemaVersion = await findVersionOn(reader)
  if (schemaVersion === undefined) throw new Error('it is empty')
  const open = opening.move()
  return createSnapshot({
    schemaVersion,
    query: async sql => (await reader.query<object>(sql)).rows,
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  })
}
