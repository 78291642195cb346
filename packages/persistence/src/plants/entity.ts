import { type Plant, type PlantRepository, parsePlant } from '@plant-store/domain'
import type { Dialect, Entity } from '@plant-store/engine'
import { type Kysely, sql } from 'kysely'
import { postgresChangeStatements } from './postgres.ts'
import { createPlantRepository } from './repository.ts'
import { sqliteChangeStatements } from './sqlite.ts'
import { readsOn } from './statements.ts'
import { type PlantRow, plantColumns, toPlant } from './tables.ts'

/** The plants of a store. */
export interface Plants extends PlantRepository {
  /** The same plants. What is changed here is not announced to webhooks. */
  readonly unannounced: PlantRepository
}

/** Runs when a thread opens a store, and for no request. */
export const plants: Entity<Plants, Plant> = {
  tables: ['plants'],
  migrations: { 1: createTable, 2: orderTagsByBytes },
  rows: {
    columns: plantColumns,
    others: ['version'],
    from: toPlant,
    parse: (row: PlantRow) => parsePlant(toPlant(row)),
  },
  compile(dialect) {
    const reads = readsOn(dialect)
    const { announced, silent } = changeStatements[dialect.name]()
    return {
      statements: {
        find: reads.find,
        ...reads.all,
        ...named('OfTag', reads.ofTag),
        ...announced,
        ...named('Unannounced', silent),
      },
      port: (runner): Plants => ({
        ...createPlantRepository(runner, { ...reads, ...announced }),
        unannounced: createPlantRepository(runner, { ...reads, ...silent }),
      }),
    }
  },
}

const changeStatements = {
  sqlite: sqliteChangeStatements,
  postgres: postgresChangeStatements,
}

/** Returns statements under names of their own, which end with this suffix. */
function named(suffix: string, statements: object) {
  const entries = Object.entries(statements)
  return Object.fromEntries(entries.map(([name, each]) => [name + suffix, each]))
}

async function createTable(db: Kysely<unknown>, { name, int64, tableOptions }: Dialect) {
  // The default is for rows that other programs insert. It is random, so that no plant
  // that the server wrote has it.
  const version = sql.raw(`${crypto.getRandomValues(new BigInt64Array(1))[0]}`)
  await sql`
    create table plants (
      id ${int64} not null primary key, name text not null, tag text,
      version ${int64} default ${version} not null
    ) ${tableOptions}`.execute(db)
  if (name === 'sqlite') {
    await sql`create index plants_by_tag on plants (tag, id)`.execute(db)
    return
  }
  // The version that the insert gave a plant, by which a save knows what it inserted, and
  // announces only that. On SQLite `announce` runs before the save, and sees it itself.
  await sql`alter table plants add column added bigint`.execute(db)
  // An entry of an index has at most 2,704 bytes, so it has only the start of a tag.
  await sql`create index plants_by_tag on plants (substr(tag, 1, 200), id)`.execute(db)
}

/**
 * Does for an index what `orderByBytes` does for columns, which a view on plants would
 * keep from changing.
 */
async function orderTagsByBytes(db: Kysely<unknown>, { name }: Dialect) {
  if (name === 'postgres') {
    await sql`drop index if exists plants_by_tag`.execute(db)
    await sql`
      create index plants_by_tag on plants (substr(tag, 1, 200) collate "C", id)
    `.execute(db)
  }
}
