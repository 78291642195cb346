import { type AddOptions, DomainError, isSamePlant, type Plant, type PlantId } from '@plant-store/domain'
import Database from 'better-sqlite3'
import { type LoadOutcome, type OnTaken, type PlantArchive, pagesOf, type StagedLoad } from '../archive.ts'
import type { StoreSnapshot } from '../storage.ts'
import { fromPlant, type PlantRow, quoted, rowColumns, selectPlants, tokensHeld, toPlant } from '../tables.ts'
import { closeOnError, openConnection, openWriterConnection, reasonOf } from './connection.ts'
import { findVersion, migrateSqlite } from './migrate.ts'
import { statements } from './statements.ts'

/** No client waits here, so a lock may take long: another load, or a checkpoint on a slow disk. */
const patientTimeoutMs = 30_000

/** Tags reach the index in random order: the part that fits here is written once a transaction, not once a row. */
const cacheKiB = 64 * 1024

/** Opens the archive of a store while servers use it. Creates or migrates the store if needed. */
export async function openSqliteArchive(file: string): Promise<PlantArchive & AsyncDisposable> {
  await migrateSqlite(file)
  return onWriter(file, writer => {
    const load = prepareLoad(writer)
    return {
      load: async (plants, onTaken, options) =>
        attempt('could not keep the plants', () => load(plants, onTaken, options)),
      stage: async (onTaken, options) =>
        attempt('could not stage the plants', () =>
          onWriter(file, loader => stage(loader, onTaken, options)),
        ),
      snapshot: () => openSqliteSnapshot(file),
      async [Symbol.asyncDispose]() {
        writer.close()
      },
    }
  })
}

function onWriter<Result>(file: string, work: (connection: Database.Database) => Result): Result {
  return closeOnError(openWriterConnection(file), connection => {
    connection.pragma(`busy_timeout = ${patientTimeoutMs}`)
    connection.pragma(`cache_size = -${cacheKiB}`)
    return work(connection)
  })
}

function prepareLoad(connection: Database.Database) {
  const insert = connection.prepare(statements.change.insertPlant)
  const save = connection.prepare(statements.change.savePlant)
  const stored = connection.prepare<[PlantId], PlantRow>(statements.read.plant)

  const loadPlant = (plant: Plant, onTaken: OnTaken): LoadOutcome => {
    const row = fromPlant(plant)
    if (insert.run(...row).changes === 1) return 'inserted'
    if (onTaken === 'keep') return outcomeOfTaken(plant, stored.get(plant.id))
    save.run(...row)
    return 'replaced'
  }
  const silently = prepareSilence(connection)
  return connection.transaction((plants: readonly Plant[], onTaken: OnTaken, options?: AddOptions) =>
    silently(options, () => plants.map(plant => loadPlant(plant, onTaken))),
  ).immediate
}

/** Returns a function that runs part of a transaction, without announcing if so asked. */
function prepareSilence(connection: Database.Database) {
  const begin = connection.prepare(statements.change.beginSilence)
  const end = connection.prepare(statements.change.endSilence)
  return <Result>({ announce = true }: AddOptions = {}, add: () => Result): Result => {
    if (announce) return add()
    begin.run()
    const result = add()
    end.run()
    return result
  }
}

function outcomeOfTaken(plant: Plant, taken: PlantRow | undefined): LoadOutcome {
  return taken && isSamePlant(toPlant(taken), plant) ? 'already-there' : 'id-taken'
}

/** Stages plants in a temporary table, so that others are blocked only at the end. */
function stage(connection: Database.Database, onTaken: OnTaken, options?: AddOptions): StagedLoad {
  // On disk, so that memory does not grow with the staged plants.
  connection.pragma('temp_store = file')
  const others = quoted(rowColumns.slice(1))
  const columns = quoted(rowColumns).join(', ')
  const values = rowColumns.map(() => '?').join(', ')
  // Without types, as values are checked when they are kept.
  connection.exec(`create temp table staged (id integer primary key, ${others.join(', ')})`)
  connection.pragma(`temp.cache_size = -${cacheKiB}`)
  const insert = connection.prepare(
    `insert into staged (${columns}) values (${values}) on conflict do nothing`,
  )
  const save = connection.prepare(statements.staged.stage)
  const stored = connection.prepare<[PlantId], PlantRow>(statements.read.plant)
  const stagedBefore = connection.prepare<[PlantId], PlantRow>(`select ${columns} from staged where id = ?`)
  const silently = prepareSilence(connection)
  const keepAll = connection.prepare(statements.staged[onTaken])
  const taken = connection.prepare(statements.staged.taken).pluck()

  const add = connection.transaction((plants: readonly Plant[]) =>
    plants.map((plant): LoadOutcome => {
      const row = fromPlant(plant)
      const taken = stored.get(plant.id)
      if (taken && onTaken === 'keep') return outcomeOfTaken(plant, taken)
      if (insert.run(...row).changes === 1) return taken ? 'replaced' : 'inserted'
      if (onTaken === 'keep') return outcomeOfTaken(plant, stagedBefore.get(plant.id))
      save.run(...row)
      return 'replaced'
    }),
  ).deferred
  const keep = connection.transaction(() => {
    try {
      silently(options, () => keepAll.run())
      return 'kept'
    } catch (error) {
      // SQLite has rolled back the whole statement, and so the whole load.
      if ((error as { code?: string }).code !== 'SQLITE_CONSTRAINT_PRIMARYKEY') throw error
      return { takenMeanwhile: taken.get() as PlantId }
    }
  }).immediate

  return {
    add: async plants => attempt('could not stage the plants', () => add(plants)),
    keep: async () => attempt('could not keep the plants', keep),
    async [Symbol.asyncDispose]() {
      connection.close()
    },
  }
}

/**
 * Opens a store of any known version read-only. May write the log back, so that no file is left behind if no other
 * process uses the store.
 *
 * @throws Error if the file is not a store, or a newer one
 */
export function openReadOnly(file: string): Database.Database {
  return closeOnError(openConnection(file, { fileMustExist: true }), connection => {
    connection.pragma('query_only = on')
    if (findVersion(connection) === undefined) throw new Database.SqliteError('it is empty', 'SQLITE_NOTADB')
    return connection
  })
}

/** @param file an existing store of any known version, which it keeps */
export async function openSqliteSnapshot(file: string): Promise<StoreSnapshot> {
  return attempt('cannot be read', () => closeOnError(openReadOnly(file), snapshotOf))
}

function snapshotOf(reader: Database.Database): StoreSnapshot {
  const countOf = (table: string) => Number(reader.prepare(`select count(*) from ${table}`).pluck().get())
  // The first read fixes the snapshot until the transaction ends.
  reader.exec('begin')
  const count = countOf('plants')
  const tokens = countOf(tokensHeld)
  const columns = reader.prepare("select name from pragma_table_info('plants')").pluck().all() as string[]
  const page = reader.prepare(`${selectPlants(columns)} where id >= ? order by id limit ?`)

  return {
    count,
    tokens,
    plants: () =>
      pagesOf(async (from, rows) => {
        // A reader faster than the disk would delay signals and timers.
        await new Promise(setImmediate)
        return attempt('cannot be read', () => page.all(from, rows)) as PlantRow[]
      }),
    async [Symbol.asyncDispose]() {
      reader.close()
    },
  }
}

/** @throws DomainError `store-unavailable` with the reason */
function attempt<Result>(failure: string, act: () => Result): Result {
  try {
    return act()
  } catch (cause) {
    throw new DomainError('store-unavailable', `the store ${failure}: ${reasonOf(cause)}`, { cause })
  }
}
