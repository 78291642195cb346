import { once } from 'node:events'
import { copyFileSync, renameSync, type StatsFs, statSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import Database from 'better-sqlite3'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  Checkpointer,
  longPages,
  type RecentChanges,
} from '../src/sqlite/checkpointer.ts'
import { openWriterConnection } from '../src/sqlite/connection.ts'
import { FileGuard } from '../src/sqlite/guard.ts'
import { failStatements, spyOnFs } from './failing-disk.ts'
import { newFile } from './places.ts'

/** Pages are small, because the limits count pages and not bytes. */
const pageBytes = 512

const onlySingle: RecentChanges = { single: true, bulk: false }
const onlyBulk: RecentChanges = { single: false, bulk: true }
const mixed: RecentChanges = { single: true, bulk: true }

/** Half of it is more than `longPages`. */
const pagesMaxByDefault = 3 * longPages

/** Creates an empty store and opens it as the writer does. */
function openStore() {
  const file = newFile()
  new Database(file).exec(`pragma page_size = ${pageBytes}; vacuum`).close()
  return { file, connection: openWriterConnection(file, 5_000) }
}

/** Opens a store with its checkpointer and guard. */
function open({ file, connection } = openStore(), pagesMax = pagesMaxByDefault) {
  connection.exec('create table texts (id integer primary key, text text)')
  const guard = new FileGuard(connection)
  let passed = Promise.withResolvers<void>()
  const failures: (string | undefined)[] = []
  const checkpointer = new Checkpointer({
    guard,
    walBytesMax: pagesMax * pageBytes,
    onPass: () => passed.resolve(),
    handleErrors: work => work(),
    onFailureChange: reason => failures.push(reason),
  })
  const limitWal = (recent = onlySingle, waitMs = 0) =>
    checkpointer.limitWal(recent, waitMs)
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
    limitWal,
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
      expect(limitWal(), 'the WAL is not too long').toBeUndefined()
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

test('the thread copies a WAL of 8,000 pages, the writer its last pages', async () => {
  const { file, write, countWal, waitForPass, limitWal, guard } = open()
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

  limitWal()
  expect(countWal().left, 'the writer has copied them').toBe(0)
  write(1)
  expect(countWal().pages, 'the WAL has begun anew').toBeLessThan(20)
  expect(guard.findFault(), 'no page is lost').toBeUndefined()
})

test.each([
  { recent: 'single', changes: onlySingle, from: 24_000, below: 7_900 },
  { recent: 'bulk', changes: onlyBulk, from: 8_000, below: 7_900 },
  { recent: 'mixed', changes: mixed, from: 1_000, below: 900 },
])('the writer copies $from pages of $recent changes, not $below', async row => {
  const { changes, from, below } = row
  const { write, countWal, limitWal } = open()

  write(below)
  limitWal(changes)
  expect(countWal().left, 'below').toBe(countWal().pages)

  write(from - below)
  limitWal(changes)
  expect(countWal().left, 'from').toBe(0)
})

describe('a WAL that another connection reads', () => {
  const fewPagesMax = longPages + 2_000

  test('grows up to its limit', async () => {
    const { file, write, countWal, limitWal } = open(openStore(), fewPagesMax)
    const endReading = readFrom(file)
    let reason: string | undefined
    while (reason === undefined) {
      write(4_000)
      reason = limitWal()
      await nextTurn()
    }

    expect(reason).toMatch(/an old state/)
    expect(countWal().pages).toBeGreaterThanOrEqual(fewPagesMax)
    expect(countWal().pages).toBeLessThan(fewPagesMax + 8_000)

    endReading()
    expect(limitWal(), 'once the reader has ended').toBeUndefined()
    write(1)
    expect(countWal().pages, 'the WAL has begun anew').toBeLessThan(20)
  })

  test('is copied by the thread once nobody reads it', async () => {
    const { file, write, countWal, limitWal, waitForPass } = open()
    const endReading = readFrom(file)
    write(longPages + 100)
    endReading()

    await waitForPass()
    limitWal()

    expect(countWal().left).toBe(0)
  })

  test('is copied by the writer from half of its limit on', () => {
    const pagesMax = 2 * (longPages + 1_000)
    const { file, write, countWal, limitWal } = open(openStore(), pagesMax)
    const endReading = readFrom(file)
    write(longPages + 100)
    endReading()
    write(1_500)

    limitWal()

    expect(countWal().left).toBe(0)
  })

  test('is waited for at its limit, like a lock', async () => {
    const { file, write, limitWal } = open(openStore(), fewPagesMax)
    const reader = new Worker(
      `const Database = require('better-sqlite3')
      const reader = new Database(process.argv[2], { readonly: true })
      reader.exec('begin').pragma('user_version')
      const { parentPort } = require('node:worker_threads')
      parentPort.once('message', () => reader.close())
      parentPort.postMessage('reads')`,
      { eval: true, argv: [file] },
    )
    await once(reader, 'message')
    write(fewPagesMax)
    expect(limitWal(), 'without a wait').toMatch(/an old state/)

    reader.postMessage('end')

    expect(limitWal(onlySingle, 30_000), 'with a wait').toBeUndefined()
  })

  test('is too long if the disk would be full', () => {
    const { file, write, limitWal } = open()
    const endReading = readFrom(file)
    write(longPages + 100)
    const bsize = pageBytes
    const need = 2 * longPages
    const statfs = spyOnFs('statfsSync')
    const leave = (bavail: number) =>
      statfs.mockReturnValueOnce({ bsize, bavail } as StatsFs)

    leave(need + 1_000)
    expect(limitWal(), 'with enough space').toBeUndefined()
    leave(need - 1_000)
    expect(limitWal(), 'with too little').toMatch(/^the disk is nearly full/)

    endReading()
  })
})

test('a pass that fails is reported once, and the first that works again', () => {
  let isFailing = true
  const store = openStore()
  failStatements(store.connection, 'passive', () => isFailing)
  const { write, limitWal, failures, guard } = open(store)
  write(longPages - 4_000)
  const reason = 'the disk fails (SQLITE_IOERR_WRITE)'

  expect(limitWal(mixed), 'the first failure').toBeUndefined()
  expect(limitWal(mixed), 'the second failure').toBeUndefined()
  expect(failures).toEqual([reason])

  write(4_000)
  expect(limitWal(mixed), 'the WAL is full').toBe(
    `its WAL is full, as it cannot be copied to the database: ${reason}`,
  )

  isFailing = false
  expect(limitWal(mixed), 'the disk works').toBeUndefined()
  expect(failures).toEqual([reason, undefined])
  expect(guard.findFault(), 'no page is lost').toBeUndefined()
})

test('a thread that dies while it copies leaves the WAL to the writer', async () => {
  const { file, write, countWal, checkpointer, limitWal, guard } = open()
  write(8_000)
  const fdatasync = spyOnFs('fdatasyncSync').mockImplementationOnce(() => {
    throw Object.assign(new Error('EIO'), { code: 'EIO' })
  })
  // The thread finds no store, so it ends.
  renameSync(file, `${file}-moved`)
  limitWal()
  await checkpointer.stop()
  renameSync(`${file}-moved`, file)
  expect(countWal().left, 'nothing is copied yet').toBeGreaterThan(8_000)
  // It may have copied pages, so they are fsynced.
  expect(fdatasync).toHaveBeenCalledOnce()
  const { reason } = guard.findFault() ?? {}
  expect(reason).toBe('EIO (EIO): stop every program that uses the store')

  limitWal()

  expect(countWal().left).toBe(0)
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
  const checkAgain = () => guard.check(Number.POSITIVE_INFINITY)
  expect(checkAgain, 'however recent the last check').toThrow(/^the disk fails: stop/)

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
