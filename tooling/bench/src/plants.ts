import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { commandProgram } from '@plant-store/harness'
import Database from 'better-sqlite3'

/**
 * Returns the id of a plant by its number. Consecutive numbers are far apart, ids are
 * unique below 2^52, and peers can keep them as JavaScript numbers. `wrk.lua` generates
 * the same plants.
 */
export const idOf = (number: number) =>
  BigInt.asUintN(52, BigInt(number) * 0x9e3779b97f4a7n)

/** Returns the line of NDJSON of a plant, with one of this many tags. */
export const toLine = (id: bigint | number, number: number, tags: number) =>
  `{"id":${id},"name":"Plant ${number}","tag":"tag-${number % tags}"}`

/** Writes a file with a line for each number from 0. */
export function writeLines(
  file: string,
  count: number,
  line: (number: number) => string,
) {
  writeFileSync(file, Array.from({ length: count }, (_, n) => `${line(n)}\n`).join(''))
}

/** Runs a program. Rejects with what it printed if it fails. */
export const run = promisify(execFile)

/** Runs our import of a file, which makes the store. */
export const importFile = (store: string, file: string) =>
  run(process.execPath, [commandProgram, 'import', file], {
    env: { DATABASE_URL: `file:${store}` },
  })

/** Returns the number of committed plants in a file. */
export function countPlants(file: string) {
  const db = new Database(file, { readonly: true })
  const count = db.prepare('select count(*) from plants').pluck().get() as number
  db.close()
  return count
}
