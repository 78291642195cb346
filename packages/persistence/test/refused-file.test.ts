import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { inspectStore, isDamage, openReader, openStorage } from '@plant-store/persistence'
import Database from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import { openFilesIn, temporaryFolder } from './store-folder.ts'

function damagePlants(file: string): void {
  const database = new Database(file)
  const roots = database
    .prepare("select rootpage from sqlite_schema where tbl_name = 'plants' and rootpage > 0")
    .pluck()
    .all()
  const pageBytes = database.pragma('page_size', { simple: true }) as number
  database.close()
  const bytes = readFileSync(file)
  for (const root of roots as number[]) bytes.fill(0xff, (root - 1) * pageBytes, root * pageBytes)
  writeFileSync(file, bytes)
}

function dropColumn(file: string): void {
  const database = new Database(file)
  database.exec(`
    drop index plants_by_tag;
    alter table plants drop column tag`)
  database.close()
}

const open = (url: string) => openStorage({ url })
const refusals = [
  ['is damaged', damagePlants, { inspectStore }],
  ['lacks a column', dropColumn, { openStorage: open, openReader }],
] as const

describe.each(refusals)('a store that %s is closed again by', (_, spoil, opens) => {
  test.each(Object.entries(opens))('%s', async (_, open) => {
    const file = join(temporaryFolder(), 'plants.db')
    const url = `file:${file}`
    await (await openStorage({ url }))[Symbol.asyncDispose]()
    spoil(file)
    const error: Error = await open(url).then(
      () => Promise.reject(new Error('it was opened')),
      (error: Error) => error,
    )
    expect(error.message).toMatch(/^the store .* cannot be opened: /)
    expect(isDamage(error)).toBe(spoil === damagePlants)
    expect(openFilesIn(file)).toEqual([])
  })
})

test.each(['pipe', '/dev/null'])('%s is no store, and opening it does not wait', async name => {
  const folder = temporaryFolder()
  execFileSync('mkfifo', [join(folder, 'pipe')])
  const url = `file:${resolve(folder, name)}`
  await expect(openStorage({ url })).rejects.toThrow(/^the store .* cannot be opened: it is not a file$/)
  for (const open of [openReader, inspectStore]) await expect(open(url)).rejects.toThrow(/ is not a file$/)
})
