import { DomainError, isDomainError } from '@plant-store/domain'
import type pg from 'pg'
import { pagesOf } from '../archive.ts'
import { readVersion, refuseNewer } from '../migrations.ts'
import type { ServerOptions, StoreReport, StoreSnapshot } from '../storage.ts'
import { type PlantRow, selectPlants, tokensHeld } from '../tables.ts'
import { type Connection, connect } from './connection.ts'
import { kyselyOn, postgresDialect } from './migrate.ts'

/** Nobody waits for an answer here, and one statement keeps all that was staged, or counts a whole table. */
export const patientTimeoutMs = 3_600_000

/**
 * Of a store of any version that this software knows; it is left at that version. The pages are the list's own, by the
 * primary key: a cursor would save nothing, and not all who speak this protocol keep one open for as long as it takes.
 */
export async function openPostgresSnapshot(options: ServerOptions): Promise<StoreSnapshot> {
  await using opening = new AsyncDisposableStack()
  const reader = opening.adopt(await openReadOnly(options), client => client.end())
  const count = await countOf(reader, 'plants')
  const tokens = await countOf(reader, tokensHeld)
  const found = await reader.query<[string]>({
    text: `
      select column_name from information_schema.columns
      where table_schema = current_schema() and table_name = 'plants'`,
    rowMode: 'array',
  })
  const text = `${selectPlants(found.rows.map(([name]) => name))} where id >= $1 order by id limit $2`
  const open = opening.move()

  return {
    count,
    tokens,
    plants: () =>
      pagesOf(async (from, rows) =>
        attempt('can not be read', async () => (await reader.query<PlantRow>(text, [from, rows])).rows),
      ),
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}

/** What a store holds, all of one moment. Whether its pages are whole is for the server's own tools to tell. */
export async function inspectPostgres(options: ServerOptions): Promise<Omit<StoreReport, 'store'>> {
  const reader = await openReadOnly(options)
  try {
    const schemaVersion = (await readVersion(kyselyOn(reader), postgresDialect)) as number
    const plants = await countOf(reader, 'plants')
    return { schemaVersion, plants, tokens: await countOf(reader, tokensHeld) }
  } finally {
    await reader.end()
  }
}

/**
 * A connection that sees the store as it is at this moment, for as long as it is open, and changes nothing.
 *
 * @throws Error when there is no store, or a newer one
 */
async function openReadOnly(options: ServerOptions): Promise<Connection> {
  const client = await connectPatiently(options)
  try {
    await client.query(client.begin('isolation level repeatable read read only'))
    const version = await readVersion(kyselyOn(client), postgresDialect)
    if (version === undefined) throw new Error('it is empty')
    refuseNewer(version)
    return client
  } catch (error) {
    await client.end()
    throw error
  }
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
