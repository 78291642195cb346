import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '@plant-store/harness/vitest'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { openWriterConnection } from '../src/sqlite/connection.ts'
import { FileGuard } from '../src/sqlite/guard.ts'

test('a guard that finds a fault at its start leaves the WAL as it is', () => {
  const file = join(temporaryFolder(), 'notes.db')
  const connection = openWriterConnection(file, 5_000)
  connection.exec('create table texts (text text)')
  connection.exec("insert into texts values ('in the WAL')")
  const storeBefore = readFileSync(file)
  const walBefore = readFileSync(`${file}-wal`)
  rmSync(`${file}-shm`)

  expect(() => new FileGuard(connection)).toThrow('notes.db-shm was removed')

  expect(connection.open).toBe(false)
  expect(readFileSync(file).equals(storeBefore), 'the store is unchanged').toBe(true)
  expect(readFileSync(`${file}-wal`).equals(walBefore), 'the WAL is kept').toBe(true)
  const reader = new Database(file, { readonly: true })
  expect(reader.prepare('select text from texts').pluck().all()).toEqual(['in the WAL'])
  reader.close()
})
