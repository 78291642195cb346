import { type AddOptions, isSamePlant, type Plant, type PlantId } from '@plant-store/domain'
import type pg from 'pg'
import type { LoadOutcome, OnTaken, PlantArchive, StagedLoad } from '../archive.ts'
import { OutcomeUnknownError, type ServerOptions } from '../storage.ts'
import {
  fromPlant,
  type PlantRow,
  plantColumns,
  quoted,
  rowColumns,
  selectPlants,
  toPlant,
} from '../tables.ts'
import type { Connection } from './connection.ts'
import { migratePostgres } from './migrate.ts'
import { attempt, connectPatiently, openPostgresSnapshot, patientTimeoutMs } from './snapshot.ts'
import { statements } from './statements.ts'
import { durably, retrying, wasRolledBack } from './transaction.ts'

/** Opens the archive of a store while servers use it. Creates or migrates the store if needed. */
export async function openPostgresArchive(options: ServerOptions): Promise<PlantArchive & AsyncDisposable> {
  await migratePostgres(options)
  const writer = await connectPatiently(options)
  return {
    load: (plants, onTaken, adding) =>
      attempt('could not keep the plants', () =>
        transaction(writer, () => inSilence(writer, adding, () => load(writer, plants, onTaken))),
      ),
    stage: (onTaken, adding) =>
      attempt('could not stage the plants', async () =>
        stage(await connectPatiently(options), onTaken, adding),
      ),
    snapshot: () => attempt('cannot be read', () => openPostgresSnapshot(options)),
    [Symbol.asyncDispose]: () => writer.end(),
  }
}

const findPlants = `${selectPlants(plantColumns)} where id = any($1::bigint[])`

/** Runs part of a transaction, without announcing if so asked. */
async function inSilence<Result>(
  client: Connection,
  { announce = true }: AddOptions = {},
  add: () => Promise<Result>,
): Promise<Result> {
  if (announce) return add()
  await client.query(statements.change.beginSilence)
  const result = await add()
  await client.query(statements.change.endSilence)
  return result
}

/** Inserts first: a plant that was not inserted then replaces a known one. */
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
  // A plant may have been removed since, and is then unknown.
  const found = new Map<PlantId, Plant | undefined>(taken.map(({ id }) => [id, undefined]))
  if (onTaken === 'replace' && taken.length > 0) await change('savePlant', taken)
  if (onTaken === 'keep' && taken.length > 0) {
    for (const plant of await storedOf(client, findPlants, taken)) found.set(plant.id, plant)
  }
  return outcomesOf(plants, found, onTaken)
}

/**
 * Stages plants in a temporary table of one transaction, so that others are blocked only at the end. Behind a pooler
 * nothing outlives a transaction.
 */
async function stage(client: Connection, onTaken: OnTaken, adding?: AddOptions): Promise<StagedLoad> {
  const findTaken = `
    ${findPlants} union all select ${quoted(plantColumns).join(', ')} from staged where id = any($1::bigint[])`

  await using opening = new AsyncDisposableStack()
  opening.use(client)
  const create = 'create temp table staged (like plants, primary key (id))'
  // Each statement must see the changes of others so far, whatever the server's default.
  const begin = client.begin('isolation level read committed')
  // Outside the transaction if possible: in some databases creating a table ends it.
  for (const sql of client.isPooled ? [begin, `${create} on commit drop`] : [create, begin]) {
    await client.query(sql)
  }

  /** Runs a step, and retries it if the server rolled it back. Plants staged before stay. */
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
    await client.query(statements.staged.stage, arraysOf(staged))
    return outcomesOf(plants, taken, onTaken)
  }
  const keep = async () => {
    for (let attempts = 1; ; attempts++) {
      try {
        await step(() => inSilence(client, adding, () => client.query(statements.staged[onTaken])))
        await commit(client)
        return 'kept'
      } catch (error) {
        if ((error as { code?: string }).code !== uniqueViolation) throw error
        const [taken] = await idsFrom(client, { text: statements.staged.taken })
        if (taken !== undefined) return { takenMeanwhile: taken }
        // It has been removed since.
        if (attempts === keepAttemptsMax)
          throw new Error('other programs insert and remove plants with these ids: try again', {
            cause: error,
          })
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
const keepAttemptsMax = 10

/**
 * Returns one plant for each id, as a statement cannot change a row twice: the last if taken ids are replaced,
 * otherwise the first. Sorted in the order in which all processes lock rows.
 */
function distinct(plants: readonly Plant[], onTaken: OnTaken): Plant[] {
  const byId = new Map<PlantId, Plant>()
  for (const plant of plants) {
    if (onTaken === 'replace' || !byId.has(plant.id)) byId.set(plant.id, plant)
  }
  return [...byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
}

/** @param taken the plants with taken ids; receives those inserted */
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

/** Returns an array for each column. */
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

/** Runs a transaction, and retries it if the server rolled it back. */
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

/** @throws OutcomeUnknownError, or the server's reason for the rollback */
async function commit(client: Connection): Promise<void> {
  try {
    await durably(client, () => client.query('commit'))
  } catch (cause) {
    throw wasRolledBack(cause) ? cause : new OutcomeUnknownError(cause as Error)
  }
}
