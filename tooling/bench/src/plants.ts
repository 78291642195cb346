import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { pathToFileURL } from 'node:url'
import { openStorage } from '@plant-store/persistence'
import Database from 'better-sqlite3'

/**
 * Returns the id of a plant by its number. Consecutive numbers are far apart, ids are
 * unique below 2^52, and peers can keep them as JavaScript numbers. `wrk.lua` generates
 * the same plants.
 */
export const idOf = (number: number) =>
  BigInt.asUintN(52, BigInt(number) * 0x9e3779b97f4a7n)

/** Fills a store of ours with plants 0 to `count` - 1, directly in its tables. */
export async function fill(file: string, count: number): Promise<void> {
  await (await openStorage({ url: pathToFileURL(file).href }))[Symbol.asyncDispose]()
  const db = new Database(file)
  const insert = db.prepare('insert into plants (id, name, tag) values (?, ?, ?)')
  db.transaction(() => {
    for (let number = 0; number < count; number++) {
      insert.run(idOf(number), `Plant ${number}`, `tag-${number % 20}`)
    }
  })()
  db.close()
}

/** Returns the version of SQLite that ours and Fastify's stores run on. */
export const sqliteVersion = () =>
  new Database(':memory:')
    .prepare<[], string>('select sqlite_version()')
    .pluck()
    .get() as string

/** Returns the number of committed plants in a file. */
export function countPlants(file: string): number {
  const db = new Database(file, { readonly: true })
  const count = db
    .prepare<[], number>('select count(*) from plants')
    .pluck()
    .get() as number
  db.close()
  return count
}

/** Writes a file with a line for each number from `first` to `last`. */
export function writeLines(
  file: string,
  first: number,
  last: number,
  line: (number: number) => string,
): Promise<void> {
  const lines = function* () {
    for (let number = first; number <= last; number++) {
      yield `${line(number)}\n`
    }
  }
  return pipeline(Readable.from(lines()), createWriteStream(file))
}
