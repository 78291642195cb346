import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { temporaryFolder } from '@plant-store/harness/vitest'
import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { openConnection, openWriterConnection } from '../src/sqlite/connection.ts'
import { detailedReasonOf, reasonOf } from '../src/sqlite/reasons.ts'
import { note, openStorage } from './notes.ts'

test('the writer abandons a store that stays locked for long, and refuses another file at once', () => {
  const file = join(temporaryFolder(), 'notes.db')
  const other = new Database(file)
  other.exec('create table t (a); begin immediate')
  const begun = performance.now()
  expect(() => openWriterConnection(file, 200)).toThrow(/locked/)
  expect(performance.now() - begun).toBeGreaterThan(200)
  other.close()

  writeFileSync(`${file}.txt`, 'Water the garden.\n'.repeat(1000))
  const begunAgain = performance.now()
  expect(() => openWriterConnection(`${file}.txt`, 60_000)).toThrow(/not a database/)
  expect(performance.now() - begunAgain).toBeLessThan(50_000)
})

test('a change waits for a lock that is soon released', async () => {
  const file = join(temporaryFolder(), 'notes.db')
  await using storage = await openStorage({ url: `file:${file}`, lockTimeoutMs: 30_000 })
  await storage.notes.insert(note(1))
  const other = new Database(file)
  other.exec('begin immediate')
  const change = storage.notes.insert(note(2))
  other.exec("insert into notes (id, text) values (3, 'by the other')")
  // The writer is a thread of its own, so this one can give the lock back while that one waits.
  setTimeout(() => other.exec('commit'), 100)
  expect(await change).toBe(true)
  expect((await storage.notes.page(10)).map(({ id }) => id)).toEqual([1n, 2n, 3n])
  other.close()
})

test('a store without a WAL is opened once another program, which is quicker, has changed it', async () => {
  const file = join(temporaryFolder(), 'notes.db')
  await (await openStorage({ url: `file:${file}` }))[Symbol.asyncDispose]()
  const other = new Database(file)

  const opening = openStorage({ url: `file:${file}` })
  // Its schema has been looked at, and its writer, a thread that is only starting, has not asked for the WAL.
  await nextTurn()
  await nextTurn()
  other.exec('begin immediate')
  setTimeout(() => other.close(), 200)
  await using storage = await opening
  expect(await storage.notes.insert(note(1))).toBe(true)
})

test('a connection needs no folder for temporary files', () => {
  const connection = openConnection(join(temporaryFolder(), 'notes.db'))
  const inMemory = 2n

  const place = connection.pragma('temp_store', { simple: true })

  expect(place).toBe(inMemory)
  connection.close()
})

test('each commit of the writer is fsynced, and others copy the WAL', () => {
  const writer = openWriterConnection(join(temporaryFolder(), 'notes.db'), 0)
  const settings = [
    'synchronous',
    'fullfsync',
    'wal_autocheckpoint',
    'cache_size',
    'journal_size_limit',
  ]
  const set = settings.map(setting => writer.pragma(setting, { simple: true }))
  expect(set).toEqual([2n, 1n, 0n, -16384n, 64n * 2n ** 20n])
  writer.close()
})

test.each([
  ['SQLITE_BUSY_SNAPSHOT', 'another program keeps it locked'],
  ['SQLITE_CANTOPEN_ISDIR', 'the file cannot be opened'],
  ['SQLITE_CORRUPT_INDEX', 'it is damaged'],
  ['SQLITE_FULL', 'the disk is full'],
  ['SQLITE_IOERR_FSYNC', 'the disk fails'],
  ['ENOENT', 'no such file or folder'],
  ['SQLITE_READONLY_DBMOVED', 'it may not be written'],
  ['SQLITE_NOLFS', 'other words'],
  ['NOT_SQLITE_FULL', 'other words'],
])('%s is put in words, and named in logs', (code, words) => {
  const error = Object.assign(new Error('other words'), { code })
  expect([reasonOf(error), detailedReasonOf(error)]).toEqual([
    words,
    `${words} (${code})`,
  ])
  expect([
    reasonOf(new Error('a defect')),
    detailedReasonOf(new Error('a defect')),
  ]).toEqual(['a defect', 'a defect'])
})
