import { DomainError, isDomainError, isSamePlant, type Plant, type PlantId } from '@plant-store/domain'
import type pg from 'pg'
import { type LoadOutcome, type OnTaken, type PlantArchive, pagesOf, type StagedLoad } from '../archive.ts'
import { OutcomeUnknownError, type ServerOptions, type StoreReport, type StoreSnapshot } from '../storage.ts'
import {
  fromPlant,
  type PlantRow,
  plantColumns,
  quoted,
  rowColumns,
  selectPlants,
  tokensHeld,
  toPlant,
} from '../tables.ts'
import { type Connection, connect } from './connection.ts'
import { findVersion, migratePostgres } from './migrate.ts'
import { statements } from './statements.ts'
import { durably, retrying, wasRolledBack } from './transaction.ts'

/** No client waits here, and one statement keeps all that was staged, or counts a whole table. */
const patientTimeoutMs = 3_600_000

/** The archive of a store, beside the servers that use it. Creates the store, or brings it up to date, where needed. */
export async function openPostgresArchive(options: ServerOptions): Promise<PlantArchive & AsyncDisposable> {
  await migratePostgres(options)
  const writer = await connectPatiently(options)
  return {
    load: (plants, onTaken) =>
      attempt('could not keep the plants', () => transaction(writer, () => load(writer, plants, onTaken))),
    stage: onTaken =>
      attempt('could not stage the plants', async () => stage(await connectPatiently(options), onTaken)),
    snapshot: () => attempt('cannot be read', () => openPostgresSnapshot(options)),
    [Symbol.asyncDispose]: () => writer.end(),
  }
}

const findPlants = `${selectPlants(plantColumns)} where id = any($1::bigint[])`

/** Inserts first: a plant that was not inserted is known to replace another one. */
async function load(
  client: Connection,
  plants: readonly Plant[],
  onTaken: OnTaken,
): Promise<readonly LoadOutcome[]> {
  const change = async (statement: 'insertPlant' | 'savePlant', changed: readonly Plant[]) =>
    idsFrom(client, { text: statements.change[statement], values: arraysOf(changed) })

  const given = distinct(plants, onTaken)
  const inserted = await change('insertPlant', given)
  const taken = given.filter(({ id }) => !inserted.has(id))
  // The plant of a taken id may have been removed since, and is then unknown.
  const found = new Map<PlantId, Plant | undefined>(taken.map(({ id }) => [id, undefined]))
  if (onTaken === 'replace' && taken.length > 0) await change('savePlant', taken)
  if (onTaken === 'keep' && taken.length > 0) {
    for (const plant of await storedOf(client, findPlants, taken)) found.set(plant.id, plant)
  }
  return outcomesOf(plants, found, onTaken)
}

/**
 * Into a table of one transaction, which ends with it, so that nobody is locked out before the end. A pooler keeps
 * nothing but a transaction on one connection of the server.
 */
async function stage(client: Connection, onTaken: OnTaken): Promise<StagedLoad> {
  const findTaken = `
    ${findPlants} union all select ${quoted(plantColumns).join(', ')} from staged where id = any($1::bigint[])`

  await using opening = new AsyncDisposableStack()
  opening.use(client)
  const create = 'create temp table staged (like plants, primary key (id))'
  // Each statement must see what others have changed by then, whatever the server's default is.
  const begin = client.begin('isolation level read committed')
  // Outside the transaction where possible: in some databases making a table ends it.
  for (const sql of client.isPooled ? [begin, `${create} on commit drop`] : [create, begin]) {
    await client.query(sql)
  }

  /** Does a part of the work, and retries it when the server took it back; what was staged before stays. */
  const step = <Result>(work: () => Promise<Result>) =>
    retrying(patientTimeoutMs, async () => {
      await client.query('savepoint step')
      try {
        return await work()
      } catch (error) {
        await client.query('rollback to savepoint step').catch(() => {})
        throw error
      } finally {
        await client.query('release savepoint step').catch(() => {})
      }
    })
  const add = async (plants: readonly Plant[]) => {
    const given = distinct(plants, onTaken)
    const found = await storedOf(client, findTaken, given)
    const taken = new Map<PlantId, Plant | undefined>(found.map(plant => [plant.id, plant]))
    const staged = onTaken === 'replace' ? given : given.filter(({ id }) => !taken.has(id))
    await client.query(statements.keep.stage, arraysOf(staged))
    return outcomesOf(plants, taken, onTaken)
  }
  const keep = async () => {
    while (true) {
      try {
        await step(() => client.query(statements.keep[onTaken]))
        await commit(client)
        return 'kept'
      } catch (error) {
        if ((error as { code?: string }).code !== uniqueViolation) throw error
        const [taken] = await idsFrom(client, { text: statements.keep.taken })
        // None when it has been removed since.
        if (taken !== undefined) return { takenMeanwhile: taken }
      }
    }
  }

  opening.move()
  return {
    add: plants => attempt('could not stage the plants', () => step(() => add(plants))),
    keep: () => attempt('could not keep the plants', keep),
    [Symbol.asyncDispose]: () => client.end(),
  }
}

const uniqueViolation = '23505'

/**
 * One plant for each id, as a statement cannot change a row twice: the last one where taken ids are replaced, or else
 * the first. In the order in which all processes lock them.
 */
function distinct(plants: readonly Plant[], onTaken: OnTaken): Plant[] {
  const byId = new Map<PlantId, Plant>()
  for (const plant of plants) {
    if (onTaken === 'replace' || !byId.has(plant.id)) byId.set(plant.id, plant)
  }
  return [...byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
}

/** @param taken the plants of the ids that are taken; those inserted are added */
function outcomesOf(
  plants: readonly Plant[],
  taken: Map<PlantId, Plant | undefined>,
  onTaken: OnTaken,
): LoadOutcome[] {
  return plants.map(plant => {
    if (!taken.has(plant.id)) {
      taken.set(plant.id, plant)
      return 'inserted'
    }
    if (onTaken === 'replace') return 'replaced'
    const found = taken.get(plant.id)
    return found && isSamePlant(found, plant) ? 'already-there' : 'id-taken'
  })
}

/** An array for each column. */
function arraysOf(plants: readonly Plant[]): unknown[][] {
  const rows = plants.map(plant => fromPlant(plant))
  return rowColumns.map((_, column) => rows.map(row => row[column]))
}

async function storedOf(client: pg.Client, text: string, plants: readonly Plant[]): Promise<Plant[]> {
  const { rows } = await client.query<PlantRow>(text, [plants.map(({ id }) => id)])
  return rows.map(toPlant)
}

async function idsFrom(client: pg.Client, query: pg.QueryConfig): Promise<Set<PlantId>> {
  const { rows } = await client.query<[PlantId]>({ ...query, rowMode: 'array' })
  return new Set(rows.map(([id]) => id))
}

/** Does work in a transaction, and retries it when the server took it back. */
function transaction<Result>(client: Connection, work: () => Promise<Result>): Promise<Result> {
  return retrying(patientTimeoutMs, async () => {
    await client.query(client.begin())
    const result = await work().catch(async error => {
      await client.query('rollback').catch(() => {})
      throw error
    })
    await commit(client)
    return result
  })
}

/** @throws OutcomeUnknownError, or what the server took the transaction back for */
async function commit(client: Connection): Promise<void> {
  try {
    await durably(client, () => client.query('commit'))
  } catch (cause) {
    throw wasRolledBack(cause) ? cause : new OutcomeUnknownError(cause as Error)
  }
}

// Pages are read by the primary key: a cursor would save nothing, and some servers do not keep one open that long.
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

/** Counts what a store holds, all of one moment. Whether its pages are whole is for the server's own tools to check. */
export async function inspectPostgres(options: ServerOptions): Promise<Omit<StoreReport, 'store'>> {
  await using reader = await openReadOnly(options)
  return {
    schemaVersion: (await findVersion(reader)) as number,
    plants: await countOf(reader, 'plants'),
    tokens: await countOf(reader, tokensHeld),
  }
}

/** Opens a store as it is at this moment, and changes nothing. Throws when there is no store, or a newer one. */
async function openReadOnly(options: ServerOptions): Promise<Connection> {
  await using opening = new AsyncDisposableStack()
  const client = opening.use(await connectPatiently(options))
  await client.query(client.begin('isolation level repeatable read read only'))
  if ((await findVersion(client)) === undefined) throw new Error('it is empty')
  opening.move()
  return client
}

function connectPatiently(options: ServerOptions): Promise<Connection> {
  return connect({ ...options, statementTimeoutMs: patientTimeoutMs })
}

async function countOf(client: pg.Client, rows: 'plants' | typeof tokensHeld): Promise<number> {
  const result = await client.query<{ count: bigint }>(`select count(*) as count from ${rows}`)
  return Number(result.rows[0]?.count)
}

/** @throws DomainError `store-unavailable` with the reason */
async function attempt<Result>(failure: string, act: () => Promise<Result>): Promise<Result> {
  try {
    return await act()
  } catch (cause) {
    if (isDomainError(cause)) throw cause
    throw new DomainError('store-unavailable', `the store ${failure}: ${(cause as Error).message}`, { cause })
  }
}
