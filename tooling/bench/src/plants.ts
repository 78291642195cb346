import { existsSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { openStorage } from '@plant-store/persistence'
import Database from 'better-sqlite3'

/**
 * Returns the id of a plant by its number. Consecutive numbers are far apart, ids are unique below 2^52, and peers can
 * keep them as JavaScript numbers. `wrk.lua` generates the same plants.
 */
export const idOf = (number: number) => BigInt.asUintN(52, BigInt(number) * 0x9e3779b97f4a7n)

/** Fills a store of ours with plants 0 to `count` - 1, directly in its tables. The first 50 have the tag `rare`. */
export async function fill(file: string, count: number): Promise<void> {
  await (await openStorage({ url: pathToFileURL(file).href }))[Symbol.asyncDispose]()
  using db = disposable(new Database(file))
  // The file is discarded if this fails.
  db.pragma('journal_mode = off')
  db.pragma('synchronous = off')
  db.pragma('cache_size = -1000000')
  const insert = db.prepare('insert into plants (id, name, tag) values (?, ?, ?)')
  db.transaction(() => {
    for (let number = 0; number < count; number++) {
      insert.run(idOf(number), `Plant ${number}`, number < 50 ? 'rare' : `tag-${number % 20}`)
    }
  })()
  db.pragma('journal_mode = wal')
}

/** Returns the number of committed plants in a file. */
export function countPlants(file: string): number {
  if (!existsSync(file)) return 0
  using db = disposable(new Database(file, { readonly: true }))
  return db.prepare<[], number>('select count(*) from plants').pluck().get() as number
}

const disposable = (db: Database.Database) => Object.assign(db, { [Symbol.dispose]: () => db.close() })
