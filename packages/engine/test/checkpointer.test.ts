import { copyFileSync, renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { temporaryFolder } from '@plant-store/harness/vitest'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import {
  Checkpointer,
  type RecentChanges,
  walPagesMax,
} from '../src/sqlite/checkpointer.ts'
import { openWriterConnection } from '../src/sqlite/connection.ts'
import { FileGuard } from '../src/sqlite/guard.ts'
import { failStatements } from './failing-disk.ts'

/** Pages are small, because the limits count pages and not bytes. */
const pageBytes = 512

const onlySingle: RecentChanges = { single: true, bulk: false }
const onlyBulk: RecentChanges = { single: false, bulk: true }
const mixed: RecentChanges = { single: true, bulk: true }

/** Creates an empty store and opens it as the writer does. */
function openStore() {
  const file = join(temporaryFolder(), 'notes.db')
  new Database(file).exec(`pragma page_size = ${pageBytes}; vacuum`).close()
  return { file, connection: openWriterConnection(file, 5_000) }
}

/** Opens a store with its checkpointer and guard. */
function open({ file, connection } = openStore()) {
  connection.exec('create table texts (id integer primary key, text text)')
  const guard = new FileGuard(connection)
  let passed = Promise.withResolvers<void>()
  const losses: string[] = []
  const failures: (string | undefined)[] = []
  const checkpointer = new Checkpointer({
    connection,
    descriptor: guard.descriptor,
    onPass: () => passed.resolve(),
    handleErrors: work => work(),
    onFailureChange: reason => failures.push(reason),
    onLoss: reason => losses.push(reason),
  })
  const copyIfLong = (recent = onlySingle) => checkpointer.copyIfLong(recent)
  const close = async () => {
    if (connection.open) {
      await checkpointer.stop()
      guard.closeStore()
    }
  }
  onTestFinished(close)

  const count = connection.prepare<[], { log: bigint; checkpointed: bigint }>(
    'pragma wal_checkpoint(noop)',
  )
  const insert = connection.prepare('insert into texts (text) values (zeroblob(?))')
  return {
    file,
    connection,
    guard,
    checkpointer,
    copyIfLong,
    losses,
    failures,
    close,
    /** Returns the number of pages in the WAL, and of those that are not copied. */
    countWal() {
      const { log = 0n, checkpointed = 0n } = count.get() ?? {}
      return { pages: Number(log), left: Number(log - checkpointed) }
    },
    /** Writes so many pages, and a few others. */
    write: (pages: number) => void insert.run(pages * (pageBytes - 4)),
    /** Resolves once the thread has copied something. */
    async waitForPass() {
      passed = Promise.withResolvers()
      expect(copyIfLong(), 'the WAL is not too long').toBeUndefined()
      await passed.promise
    },
  }
}

function countTexts(connection: Database.Database) {
  return connection.prepare('select count(*) from texts').pluck().get()
}

/** Another connection reads, until the returned function is called. */
function readFrom(file: string) {
  const reader = new Database(file, { readonly: true })
  reader.exec('begin')
  reader.pragma('user_version')
  return () => reader.close()
}

test('a WAL of less than 8,000 pages is not copied', () => {
  const { write, countWal, copyIfLong } = open()
  write(7_900)

  copyIfLong()

  const { pages, left } = countWal()
  expect(left).toBe(pages)
})

test('the thread copies a WAL of 8,000 pages, the writer its last pages', async () => {
  const { file, write, countWal, waitForPass, copyIfLong, losses } = open()
  const bytesBefore = statSync(file).size
  write(8_100)
  const endReading = readFrom(file)
  write(200)

  await waitForPass()
  endReading()
  const bytesAfter = statSync(file).size
  expect(bytesAfter, 'most pages are copied').toBeGreaterThan(
    bytesBefore + 8_000 * pageBytes,
  )
  expect(countWal().left, 'but not the last ones').toBeGreaterThan(200)

  copyIfLong()
  expect(countWal().left, 'the writer has copied them').toBe(0)
  write(1)
  expect(countWal().pages, 'the WAL has begun anew').toBeLessThan(20)
  expect(losses).toEqual([])
})

test('the writer copies 1,000 pages if there are bulk and single changes', () => {
  const { write, countWal, copyIfLong } = open()
  write(1_000)

  copyIfLong(onlySingle)
  copyIfLong(onlyBulk)
  expect(countWal().left, 'with one kind of changes').toBeGreaterThan(1_000)

  copyIfLong(mixed)
  expect(countWal().left, 'with both').toBe(0)
})

test('the writer copies the 8,000 pages of bulk changes itself', () => {
  const { write, countWal, copyIfLong } = open()
  write(8_000)

  copyIfLong(onlyBulk)

  expect(countWal().left).toBe(0)
})

test('the writer copies the WAL itself once it is three times as long', () => {
  const { write, countWal, copyIfLong } = open()
  write(24_000)

  copyIfLong()

  expect(countWal().left).toBe(0)
})

test('a WAL that another connection reads stays below 64,000 pages', async () => {
  const { file, write, countWal, copyIfLong } = open()
  const endReading = readFrom(file)
  let reason: string | undefined
  while (reason === undefined) {
    write(4_000)
    reason = copyIfLong()
    await nextTurn()
  }

  expect(reason).toMatch(/an old state/)
  expect(countWal().pages).toBeGreaterThanOrEqual(walPagesMax)
  expect(countWal().pages).toBeLessThan(2 * walPagesMax)

  endReading()
  expect(copyIfLong(), 'once the reader has ended').toBeUndefined()
  write(1)
  expect(countWal().pages, 'the WAL has begun anew').toBeLessThan(20)
})

test('a pass that fails is reported once, and the first that works again', () => {
  let isFailing = true
  const store = openStore()
  failStatements(store.connection, 'passive', () => isFailing)
  const { write, copyIfLong, failures, losses } = open(store)
  write(walPagesMax - 4_000)
  const reason = 'the disk fails (SQLITE_IOERR_WRITE)'

  expect(copyIfLong(mixed), 'the first failure').toBeUndefined()
  expect(copyIfLong(mixed), 'the second failure').toBeUndefined()
  expect(failures).toEqual([reason])

  write(4_000)
  expect(copyIfLong(mixed), 'the WAL is full').toBe(
    `its WAL is full, as it cannot be copied to the database: ${reason}`,
  )

  isFailing = false
  expect(copyIfLong(mixed), 'the disk works').toBeUndefined()
  expect(failures).toEqual([reason, undefined])
  expect(losses).toEqual([])
})

test('the writer copies the WAL if the thread cannot start', async () => {
  const { file, write, countWal, checkpointer, copyIfLong, losses } = open()
  write(8_000)
  renameSync(file, `${file}-moved`)
  copyIfLong()
  await checkpointer.stop()
  renameSync(`${file}-moved`, file)
  expect(countWal().left, 'nothing is copied yet').toBeGreaterThan(8_000)

  copyIfLong()

  expect(countWal().left).toBe(0)
  expect(losses).toEqual([])
})

test('after a failed fsync of copied pages the next opening copies all', async () => {
  const { file, connection, write, waitForPass, guard, close } = open()
  const before = `${file}-before`
  copyFileSync(file, before)
  write(9_000)
  const endReading = readFrom(file)
  write(1_000)
  await waitForPass()
  endReading()
  guard.failForLostPages('the disk fails')
  expect(guard.findFault()?.reason).toMatch(/^the disk fails: stop/)

  const other = new Database(file, { timeout: 100 })
  other.pragma('wal_checkpoint(truncate)')
  other.exec("insert into texts (text) values ('by another process')")
  other.close()
  expect(countTexts(connection), 'the WAL did not begin anew').toBe(3n)
  await close()
  expect(connection.open).toBe(false)

  // No page that was copied has reached the disk.
  copyFileSync(before, file)
  const next = openWriterConnection(file, 0)
  expect(countTexts(next)).toBe(3n)
  expect(next.pragma('integrity_check', { simple: true })).toBe('ok')
  next.close()
})
