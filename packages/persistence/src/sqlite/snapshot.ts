import { DomainError } from '@plant-store/domain'
import type Database from 'better-sqlite3'
import { pagesOf } from '../archive.ts'
import type { StoreSnapshot } from '../storage.ts'
import { type PlantRow, selectPlants, tokensHeld } from '../tables.ts'
import { closeOnError, openConnection, reasonOf } from './connection.ts'
import { findVersion } from './migrate.ts'

/**
 * Opens a store of any version and changes nothing. It may write the log back, so that no file is left behind when no
 * other process uses the store. Throws when the file is no store, or a newer one.
 */
export function openReadOnly(file: string): Database.Database {
  return closeOnError(openConnection(file, { fileMustExist: true }), connection => {
    connection.pragma('query_only = on')
    if (findVersion(connection) === undefined) throw new Error('it is empty')
    return connection
  })
}

/** @param file an existing store of any version that this software knows; it keeps its version */
export async function openSqliteSnapshot(file: string): Promise<StoreSnapshot> {
  return attempt('cannot be read', () => closeOnError(openReadOnly(file), snapshotOf))
}

function snapshotOf(reader: Database.Database): StoreSnapshot {
  const countOf = (table: string) => Number(reader.prepare(`select count(*) from ${table}`).pluck().get())
  // The first read fixes the moment: until the transaction ends, no later change is seen.
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
        // A reader that is never slower than the disk would keep signals and timers waiting.
        await new Promise(setImmediate)
        return attempt('cannot be read', () => page.all(from, rows)) as PlantRow[]
      }),
    async [Symbol.asyncDispose]() {
      reader.close()
    },
  }
}

/** @throws DomainError `store-unavailable` with the reason */
export function attempt<Result>(failure: string, act: () => Result): Result {
  try {
    return act()
  } catch (cause) {
    throw new DomainError('store-unavailable', `the store ${failure}: ${reasonOf(cause)}`, { cause })
  }
}
