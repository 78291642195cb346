import type { Migration } from '@plant-store/engine'
import { sql } from 'kysely'

/**
 * Returns a migration after which the indexes of columns are in the order of their bytes,
 * as they always are on SQLite.
 *
 * On PostgreSQL they follow the language of the database otherwise. An upgrade of the
 * system's library may change that order, and entries of the index are then not found.
 *
 * @param columns their names by table
 */
export function orderByBytes(columns: Readonly<Record<string, string[]>>): Migration {
  return async (db, dialect) => {
    if (dialect.name === 'sqlite') {
      return
    }
    for (const [table, names] of Object.entries(columns)) {
      for (const name of names) {
        await sql`
          alter table ${sql.table(table)}
          alter column ${sql.ref(name)} type text collate "C"`.execute(db)
      }
    }
  }
}
