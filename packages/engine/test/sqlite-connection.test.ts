import { setImmediate as nextTurn } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { reasonOf, reasonWithCode } from '../src/errors.ts'
import { openConnection, openWriterConnection } from '../src/sqlite/connection.ts'
import { note, openStorage } from './notes.ts'
import { createStore, newFile } from './places.ts'

test('a change waits for a lock that is soon released', async () => {
  const file = newFile()
  await using storage = await openStorage({ url: `file:${file}`, lockTimeoutMs: 30_000 })
  await storage.notes.insert(note(1))
  const other = new Database(file)
  other.exec('begin immediate')

  const change = storage.notes.insert(note(2))
  other.exec("insert into notes (id, text) values (3, 'by the other')")
  // The writer is another thread, so this one can release the lock while the writer
  // waits.
  setTimeout(() => other.exec('commit'), 100)

  expect(await change).toBe(true)
  const notes = await storage.notes.page(10)
  expect(notes).toMatchObject([{ id: 1n }, { id: 2n }, { id: 3n }])
  other.close()
})

test('a store is opened although another program has locked it first', async () => {
  const file = newFile()
  await createStore(`file:${file}`)
  const other = new Database(file)

  const opening = openStorage({ url: `file:${file}` })
  // The schema was looked at. The thread of the writer is starting, and has not asked for
  // the WAL yet.
  await nextTurn()
  await nextTurn()
  other.exec('begin immediate')
  setTimeout(() => other.close(), 200)

  await using storage = await opening
  expect(await storage.notes.insert(note(1))).toBe(true)
})

test('a connection needs no folder for temporary files', () => {
  const connection = openConnection(newFile())
  const inMemory = 2n

  const place = connection.pragma('temp_store', { simple: true })

  expect(place).toBe(inMemory)
  connection.close()
})

test('each commit of the writer is fsynced, and others copy the WAL', () => {
  const writer = openWriterConnection(newFile(), 0)
  const readSetting = (setting: string) => writer.pragma(setting, { simple: true })
  const settings = {
    synchronous: 2n,
    fullfsync: 1n,
    wal_autocheckpoint: 0n,
    cache_size: -16384n,
    journal_size_limit: 64n * 2n ** 20n,
  }

  const names = Object.keys(settings)
  const actual = Object.fromEntries(names.map(name => [name, readSetting(name)]))

  expect(actual).toEqual(settings)
  writer.close()
})

test.each(
  Object.entries({
    SQLITE_BUSY_SNAPSHOT: 'another program keeps it locked',
    SQLITE_FULL: 'the disk is full',
    ENOENT: 'no such file or folder',
    SQLITE_READONLY_DBMOVED: 'it may not be written',
    NOT_SQLITE_FULL: 'other words',
  }),
)('%s is put in words, and named in logs', (code, words) => {
  const error = Object.assign(new Error('other words'), { code })

  expect(reasonOf(error)).toBe(words)
  expect(reasonWithCode(error)).toBe(`${words} (${code})`)
})

test('an error without a code has the words of its message', () => {
  const error = new Error('a defect')

  expect(reasonOf(error)).toBe('a defect')
  expect(reasonWithCode(error)).toBe('a defect')
})
