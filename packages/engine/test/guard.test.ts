import { copyFileSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '@plant-store/harness/vitest'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { openWriterConnection } from '../src/sqlite/connection.ts'
import { FileGuard } from '../src/sqlite/guard.ts'
import { setStoreId } from '../src/sqlite/store-id.ts'

const changesOf = (file: string) => readFileSync(file).readUInt32BE(24)

/** Creates a store of texts, of which some are in the WAL. */
function createStore(id: number) {
  const file = join(temporaryFolder(), 'notes.db')
  const connection = openWriterConnection(file, 5_000)
  setStoreId(connection, id)
  connection.exec('create table texts (text text)')
  insertTexts(connection, 300)
  return { file, connection }
}

function insertTexts(connection: Database.Database, count: number) {
  const insert = connection.prepare('insert into texts values (?)')
  const insertAll = connection.transaction(() => {
    for (let n = 0; n < count; n++) {
      insert.run(`${n} `.repeat(100))
    }
  })
  insertAll()
}

/** Serves a store, which another program has open, too. */
function serve() {
  const { file, connection: server } = createStore(1)
  copyWal(server)
  const guard = new FileGuard(server)
  const other = new Database(file)
  onTestFinished(() => {
    other.close()
    guard.closeStore()
  })
  return { file, server, guard, other }
}

function copyWal(connection: Database.Database) {
  connection.pragma('wal_checkpoint(passive)')
}

test('a guard that finds a fault at its start leaves the WAL as it is', () => {
  const { file, connection } = createStore(1)
  const storeBefore = readFileSync(file)
  const walBefore = readFileSync(`${file}-wal`)
  rmSync(`${file}-shm`)

  expect(() => new FileGuard(connection)).toThrow('notes.db-shm was removed')

  expect(connection.open).toBe(false)
  expect(readFileSync(file).equals(storeBefore), 'the store is unchanged').toBe(true)
  expect(readFileSync(`${file}-wal`).equals(walBefore), 'the WAL is kept').toBe(true)
  const reader = new Database(file, { readonly: true })
  expect(reader.prepare('select count(*) from texts').pluck().get()).toBe(300)
  reader.close()
})

test('a store that grows again before the check after a VACUUM is no fault', () => {
  const { file, server, guard, other } = serve()
  const bytesBefore = statSync(file).size
  other.exec('delete from texts where rowid > 100; vacuum')
  copyWal(other)
  expect(statSync(file).size, 'the file is smaller').toBeLessThan(bytesBefore)

  insertTexts(server, 1_000)

  expect(guard.findFault()).toBeUndefined()
  copyWal(other)
  expect(guard.findFault()).toBeUndefined()
})

test('a program that makes a served store smaller twice is no fault', () => {
  const { server, guard, other } = serve()
  other.exec('delete from texts where rowid > 200; vacuum')
  copyWal(other)
  expect(guard.findFault()).toBeUndefined()

  other.exec('delete from texts where rowid > 50; vacuum')
  copyWal(other)

  expect(guard.findFault()).toBeUndefined()
  insertTexts(server, 1_000)
  copyWal(other)
  expect(guard.findFault()).toBeUndefined()
})

test('an earlier copy that counts as many changes is a fault', () => {
  const { file, server, guard } = serve()
  const copy = `${file}.copy`
  copyFileSync(file, copy)
  insertTexts(server, 300)
  copyWal(server)
  expect(guard.findFault()).toBeUndefined()
  expect(changesOf(copy), 'one process counts only once').toBe(changesOf(file))

  copyFileSync(copy, file)

  expect(guard.findFault()?.reason).toContain('notes.db was overwritten')
})

test('a larger copy of another store is a fault', () => {
  const { file, guard } = serve()
  const another = createStore(2)
  insertTexts(another.connection, 1_000)
  copyWal(another.connection)
  expect(changesOf(another.file)).toBeGreaterThanOrEqual(changesOf(file))

  copyFileSync(another.file, file)

  expect(guard.findFault()?.reason).toContain('notes.db was overwritten')
  another.connection.close()
})

test('a store that a program has replaced by means of SQLite is no fault', async () => {
  const { file, server, guard, other } = serve()
  const another = createStore(2)
  insertTexts(another.connection, 1_000)

  await another.connection.backup(file)
  copyWal(other)

  expect(guard.findFault()).toBeUndefined()
  insertTexts(server, 10)
  copyWal(server)
  expect(guard.findFault()).toBeUndefined()
  another.connection.close()
})
