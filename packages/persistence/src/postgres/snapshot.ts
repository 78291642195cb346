import { DomainError, isDomainError } from '@plant-store/domain'
import type pg from 'pg'
import { pagesOf } from '../archive.ts'
import type { ServerOptions, StoreReport, StoreSnapshot } from '../storage.ts'
import { type PlantRow, selectPlants, tokensHeld } from '../tables.ts'
import { type Connection, connect } from './connection.ts'
import { findVersion } from './migrate.ts'

/** No client waits here, and a single statement may store all staged plants or count a whole table. */
export const patientTimeoutMs = 3_600_000

// Pages are read by primary key: a cursor would save nothing, and some servers do not keep one open that
// long.
export async function openPostgresSnapshot(options: ServerOptions): Promise<StoreSnapshot> {
  await using opening = new AsyncDisposableStack()
  const reader = opening.use(await openReadOnly(options))
  const count = await countOf(reader, 'plants')
  const tokens = await countOf(reader, tokensHeld)
  const columns = await reader.query<{ name: string }>(`
    select column_name as name from information_schema.columns
    where table_schema = current_schema() and table_name = 'plants'`)
  const text = `${selectPlants(columns.rows.map(({ name }) => name))} where id >= $1 order by id limit $2`
  opening.move()

  return {
    count,
    tokens,
    plants: () =>
      pagesOf(async (from, rows) =>
        attempt('cannot be read', async () => (await reader.query<PlantRow>(text, [from, rows])).rows),
      ),
    [Symbol.asyncDispose]: () => reader.end(),
  }
}

/** Counts plants and tokens as of one moment. The server's own tools check its pages. */
export async function inspectPostgres(options: ServerOptions): Promise<Omit<StoreReport, 'store'>> {
  await using reader = await openReadOnly(options)
  return {
    schemaVersion: (await findVersion(reader)) as number,
    plants: await countOf(reader, 'plants'),
    tokens: await countOf(reader, tokensHeld),
  }
}

/**
 * Opens a store read-only, as of now.
 *
 * @throws Error if there is no store, or a newer one
 */
async function openReadOnly(options: ServerOptions): Promise<Connection> {
  await using opening = new AsyncDisposableStack()
  const client = opening.use(await connectPatiently(options))
  await client.query(client.begin('isolation level repeatable read read only'))
  if ((await findVersion(client)) === undefined) throw new Error('it is empty')
  opening.move()
  return client
}

export function connectPatiently(options: ServerOptions): Promise<Connection> {
  return connect({ ...options, statementTimeoutMs: patientTimeoutMs })
}

async function countOf(client: pg.Client, rows: 'plants' | typeof tokensHeld): Promise<number> {
  const result = await client.query<{ count: bigint }>(`select count(*) as count from ${rows}`)
  return Number(result.rows[0]?.count)
}

/** @throws DomainError `store-unavailable` with the reason */
export async function attempt<Result>(failure: string, act: () => Promise<Result>): Promise<Result> {
  try {
    return await act()
  } catch (cause) {
    if (isDomainError(cause)) throw cause
    throw new DomainError('store-unavailable', `the store ${failure}: ${(cause as Error).message}`, { cause })
  }
}
