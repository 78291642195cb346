import { type Plant, type PlantRepository, parsePlant } from '@plant-store/domain'
import type { Dialect, Entity } from '@plant-store/engine'
import { type Kysely, sql } from 'kysely'
import { createPlantRepository } from './repository.ts'
import { plantStatements, tagIndex } from './statements.ts'
import { type PlantRow, plantColumns, toPlant } from './tables.ts'

export const plants: Entity<PlantRepository, Plant> = {
  tables: ['plants'],
  migrations: { 6: createTable },
  rows: {
    columns: plantColumns,
    others: ['version'],
    from: toPlant,
    parse: (row: PlantRow) => parsePlant(toPlant(row)),
  },
  compile(dialect) {
    const statements = plantStatements(dialect)
    return { statements, port: runner => createPlantRepository(runner, statements) }
  },
}

async function createTable(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const { int64, tableOptions } = dialect
  // The default is for rows that other programs insert. It is random, so that no plant that the server wrote has it.
  const version = sql.raw(`${crypto.getRandomValues(new BigInt64Array(1))[0]}`)
  await db.schema
    .createTable('plants')
    .addColumn('id', int64, column => column.primaryKey().notNull())
    .addColumn('name', 'text', column => column.notNull())
    .addColumn('tag', 'text')
    .addColumn('version', int64, column => column.notNull().defaultTo(version))
    .modifyEnd(tableOptions)
    .execute()
  await db.schema
    .createIndex('plants_by_tag')
    .on('plants')
    .expression(tagIndex(dialect))
    .execute()
}
