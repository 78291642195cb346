import { dirname, resolve } from 'node:path'
import {
  DomainError,
  type LoadOutcome,
  type OnTaken,
  type Plant,
  type PlantArchive,
  type PlantId,
  type PlantSnapshot,
  plantIdMax,
  plantIdMin,
  type StagedLoad,
} from '@plant-store/domain'
import type Database from 'better-sqlite3'
import { fromPlant, type PlantRow, plantColumns, toPlant } from '../tables.ts'
import { openConnection, openWriter } from './connection.ts'
import { createFolder, migrateSqlite, statements } from './open.ts'
import { openQuery } from './query.ts'
import { reasonOf } from './reason.ts'

/** Nobody waits for an answer here, so a lock may take its time: another load, or a checkpoint on a slow disk. */
const patientTimeoutMs = 30_000

/** The index of tags is written all over: what of it fits here is written once a transaction, not once a row. */
const cacheKiB = 64 * 1024

const pieceRows = 1_000

/**
 * The archive of a store, beside whoever else uses it.
 *
 * @param file a store that isn't there is made, one of an earlier version is brought up to date
 */
export async function openSqliteArchive(file: string): Promise<PlantArchive & AsyncDisposable> {
  createFolder(dirname(resolve(file)))
  const migrating = openConnection(file)
  try {
    await migrateSqlite(migrating)
  } finally {
    migrating.close()
  }
  const writer = openLoader(file)
  const load = prepareLoad(writer)

  return {
    load: async (plants, onTaken) => attempt('could not keep the plants', () => load(plants, onTaken)),
    stage: async onTaken => attempt('could not stage the plants', () => stage(openLoader(file), onTaken)),
    snapshot: () => openSqliteSnapshot(file),
    async [Symbol.asyncDispose]() {
      writer.close()
    },
  }
}

/** @param file a store that is there, of any version that this software knows; it is left at that version */
export async function openSqliteSnapshot(file: string): Promise<PlantSnapshot> {
  const reader = attempt('can not be read', () => openQuery(file))
  // The first read is what the snapshot is of; until the transaction ends, no later change is seen.
  const count = attempt('can not be read', () => {
    reader.exec('begin')
    return Number(reader.prepare('select count(*) from plants').pluck().get())
  })
  const page = reader.prepare(statements.read.page)

  return {
    count,
    async *plants() {
      let from = plantIdMin
      while (true) {
        const rows = attempt('can not be read', () => page.all(from, pieceRows)) as PlantRow[]
        if (rows.length > 0) yield rows.map(toPlant)
        const last = rows.at(-1)?.id
        if (rows.length < pieceRows || last === undefined || last === plantIdMax) return
        from = last + 1n
        // A reader that is never slower than the disk would keep signals and timers waiting.
        await new Promise(setImmediate)
      }
    },
    async [Symbol.asyncDispose]() {
      reader.close()
    },
  }
}

function openLoader(file: string): Database.Database {
  const connection = openWriter(file)
  connection.pragma(`busy_timeout = ${patientTimeoutMs}`)
  connection.pragma(`cache_size = -${cacheKiB}`)
  return connection
}

function prepareLoad(connection: Database.Database) {
  const insert = connection.prepare(statements.write.insertPlant)
  const save = connection.prepare(statements.write.savePlant)

  return connection.transaction((plants: readonly Plant[], onTaken: OnTaken) =>
    plants.map((plant): LoadOutcome => {
      const row = fromPlant(plant)
      if (insert.run(...row).changes === 1) return 'inserted'
      if (onTaken === 'keep') return 'id-taken'
      save.run(...row)
      return 'replaced'
    }),
  ).immediate
}

/** Into a table that only this connection has, so that nobody is locked out before the end. */
function stage(connection: Database.Database, onTaken: OnTaken): StagedLoad {
  // On the disk: the memory of the process must not grow with what is staged.
  connection.pragma('temp_store = file')
  const texts = plantColumns.filter(column => column !== 'id')
  const columns = plantColumns.join(', ')
  const values = plantColumns.map(() => '?').join(', ')
  // Without types: what is stored is judged when it is kept.
  connection.exec(`create temp table staged (id integer primary key, ${texts.join(', ')})`)
  connection.pragma(`temp.cache_size = -${cacheKiB}`)
  const insert = connection.prepare(
    `insert into staged (${columns}) values (${values}) on conflict do nothing`,
  )
  const save = connection.prepare(`insert or replace into staged (${columns}) values (${values})`)
  const stored = connection.prepare('select 1 from plants where id = ?').pluck()
  const replacing = texts.map(column => `${column} = excluded.${column}`).join(', ')
  const keepAll = connection.prepare(`
    insert into plants (${columns}) select ${columns} from staged where true order by id
    ${onTaken === 'replace' ? `on conflict (id) do update set ${replacing}` : ''}
  `)
  const taken = connection.prepare('select id from staged join plants using (id) limit 1').pluck()

  const add = connection.transaction((plants: readonly Plant[]) =>
    plants.map((plant): LoadOutcome => {
      const row = fromPlant(plant)
      const isStored = stored.get(plant.id) !== undefined
      if (isStored && onTaken === 'keep') return 'id-taken'
      if (insert.run(...row).changes === 1) return isStored ? 'replaced' : 'inserted'
      if (onTaken === 'keep') return 'id-taken'
      save.run(...row)
      return 'replaced'
    }),
  ).deferred
  const keep = connection.transaction(() => {
    try {
      keepAll.run()
      return 'kept'
    } catch (error) {
      // SQLite has taken back the whole statement, and so the whole load.
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

function attempt<Result>(failure: string, act: () => Result): Result {
  try {
    return act()
  } catch (cause) {
    throw new DomainError('store-unavailable', `the store ${failure}: ${reasonOf(cause)}`, { cause })
  }
}
