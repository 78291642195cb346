import { DomainError, isDomainError, isSamePlant, type Plant, type PlantId } from '@plant-store/domain'
import type pg from 'pg'
import { type LoadOutcome, type OnTaken, type PlantArchive, pagesOf, type StagedLoad } from '../archive.ts'
import { readVersion, refuseNewer } from '../migrations.ts'
import { OutcomeUnknownError, type ServerOptions, type StoreReport, type StoreSnapshot } from '../storage.ts'
import {
  fromPlant,
  type PlantRow,
  plantColumns,
  quoted,
  selectPlants,
  tokensHeld,
  toPlant,
} from '../tables.ts'
import { type Connection, connect, retrying, wasRolledBack } from './connection.ts'
import { kyselyOn, migratePostgres, postgresDialect } from './migrate.ts'
import { plantTypes, statements } from './statements.ts'
import { durably } from './transaction.ts'

/** Nobody waits for an answer here, and one statement keeps all that was staged, or counts a whole table. */
const patientTimeoutMs = 3_600_000

/** The archive of a store, beside whoever else uses it. The tables are made, or brought up to date, where needed. */
export async function openPostgresArchive(options: ServerOptions): Promise<PlantArchive & AsyncDisposable> {
  await migratePostgres(options)
  const writer = await connectPatiently(options)
  return {
    load: (plants, onTaken) =>
      attempt('could not keep the plants', () => transaction(writer, () => load(writer, plants, onTaken))),
    stage: onTaken =>
      attempt('could not stage the plants', async () => stage(await connectPatiently(options), onTaken)),
    snapshot: () => attempt('can not be read', () => openPostgresSnapshot(options)),
    [Symbol.asyncDispose]: () => writer.end(),
  }
}

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

function connectPatiently(options: ServerOptions): Promise<Connection> {
  return connect({ ...options, statementTimeoutMs: patientTimeoutMs })
}

async function countOf(client: pg.Client, rows: 'plants' | typeof tokensHeld): Promise<number> {
  const result = await client.query<{ count: bigint }>(`select count(*) as count from ${rows}`)
  return Number(result.rows[0]?.count)
}

/** ids */
const findPlants = `${selectPlants(plantColumns)} where id = any($1::bigint[])`

/** Inserts first: only of those that were not can it be said that they take the place of another plant. */
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
  const ids = taken.map(({ id }) => id)
  // Somebody may have removed it again: then nobody knows which plant it was.
  const found = new Map<PlantId, Plant | undefined>(ids.map(id => [id, undefined]))
  if (onTaken === 'replace' && taken.length > 0) await change('savePlant', taken)
  if (onTaken === 'keep' && taken.length > 0) {
    for (const plant of await plantsOf(client, findPlants, ids)) found.set(plant.id, plant)
  }
  return outcomesOf(plants, found, onTaken)
}

/**
 * Into a table that only one transaction has, and that is gone with it, so that nobody is locked out before the end. One
 * transaction, as behind a pooler nothing else is sure to stay with one connection of the server.
 */
async function stage(client: Connection, onTaken: OnTaken): Promise<StagedLoad> {
  const columns = quoted(plantColumns).join(', ')
  const arrays = plantTypes.map((type, index) => `$${index + 1}::${type}[]`).join(', ')
  const replacing = quoted(plantColumns.slice(1))
    .map(column => `${column} = excluded.${column}`)
    .join(', ')
  const replaceTaken = `on conflict (id) do update set ${replacing}`
  const findTaken = `
    ${findPlants} union all select ${columns} from staged where id = any($1::bigint[])`
  const save = `insert into staged (${columns}) select * from unnest(${arrays}) ${replaceTaken}`
  const keepAll = `
    insert into plants (${columns}) select ${columns} from staged order by id
    ${onTaken === 'replace' ? replaceTaken : ''}`
  const idTaken = 'select id from staged join plants using (id) limit 1'

  try {
    const create = 'create temp table staged (like plants, primary key (id))'
    // Each statement is to see what others have changed by then, whatever the server's default is.
    const begin = client.begin('isolation level read committed')
    // Not in the transaction where it can be helped: in some databases making a table ends it.
    for (const sql of client.isPooled ? [begin, `${create} on commit drop`] : [create, begin]) {
      await client.query(sql)
    }
  } catch (error) {
    await client.end()
    throw error
  }

  /** Does a part of the work, and again when the server took it back; what was staged before stays. */
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
    const found = await plantsOf(
      client,
      findTaken,
      given.map(({ id }) => id),
    )
    const taken = new Map<PlantId, Plant | undefined>(found.map(plant => [plant.id, plant]))
    const staged = onTaken === 'replace' ? given : given.filter(({ id }) => !taken.has(id))
    await client.query(save, arraysOf(staged))
    return outcomesOf(plants, taken, onTaken)
  }
  const keep = async () => {
    while (true) {
      try {
        await step(() => client.query(keepAll))
        await commit(client)
        return 'kept'
      } catch (error) {
        if ((error as { code?: string }).code !== uniqueViolation) throw error
        const [taken] = await idsFrom(client, { text: idTaken })
        // None when it was removed again since.
        if (taken !== undefined) return { takenMeanwhile: taken }
      }
    }
  }

  return {
    add: plants => attempt('could not stage the plants', () => step(() => add(plants))),
    keep: () => attempt('could not keep the plants', keep),
    [Symbol.asyncDispose]: () => client.end(),
  }
}

const uniqueViolation = '23505'

/**
 * One plant for each id, as a statement can't change a row twice: the last one where taken ids are replaced, or else
 * the first. In the order in which all processes lock them.
 */
function distinct(plants: readonly Plant[], onTaken: OnTaken): Plant[] {
  const byId = new Map<PlantId, Plant>()
  for (const plant of plants) {
    if (onTaken === 'replace' || !byId.has(plant.id)) byId.set(plant.id, plant)
  }
  return [...byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
}

/** @param taken before the first of them; those that take an id are added */
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
  const rows = plants.map(fromPlant)
  return plantColumns.map((_, column) => rows.map(row => row[column]))
}

async function plantsOf(client: pg.Client, text: string, ids: readonly PlantId[]): Promise<Plant[]> {
  const { rows } = await client.query<PlantRow>(text, [ids])
  return rows.map(toPlant)
}

async function idsFrom(client: pg.Client, query: pg.QueryConfig): Promise<Set<PlantId>> {
  const { rows } = await client.query<[PlantId]>({ ...query, rowMode: 'array' })
  return new Set(rows.map(([id]) => id))
}

/** Does work in a transaction, and again when the server took it back. */
function transaction<Result>(client: Connection, work: () => Promise<Result>): Promise<Result> {
  return retrying(patientTimeoutMs, async () => {
    await client.query(client.begin())
    let result: Result
    try {
      result = await work()
    } catch (error) {
      await client.query('rollback').catch(() => {})
      throw error
    }
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

async function attempt<Result>(failure: string, act: () => Promise<Result>): Promise<Result> {
  try {
    return await act()
  } catch (cause) {
    if (isDomainError(cause)) throw cause
    throw new DomainError('store-unavailable', `the store ${failure}: ${(cause as Error).message}`, { cause })
  }
}
