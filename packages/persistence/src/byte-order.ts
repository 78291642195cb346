import type { Migration } from '@plant-store/engine'
import { sql } from 'kysely'

/**
 * Returns a migration after which the indexes of columns are in the order of their bytes,
 * as they always are on SQLite.
 *
 * On PostgreSQL they follow the language of the database otherwise. An upgrade of the
 * system's library may change that order, and entries of the index are then not found.
 */
export function orderByBytes(table: string, columns: readonly string[]): Migration {
  return async (db, { name }) => {
    if (name !== 'postgres') {
      return
    }
    for (const column of columns) {
      await sql`
        alter table ${sql.table(table)}
        alter column ${sql.ref(column)} type text collate "C"`.execute(db)
    }
  }
}
