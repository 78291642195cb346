import { copyFileSync, renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { temporaryFolder } from '@plant-store/harness/vitest'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test, vi } from 'vitest'
import { Checkpointer, walPagesMax } from '../src/sqlite/checkpointer.ts'
import { openWriterConnection } from '../src/sqlite/connection.ts'
import { FileGuard } from '../src/sqlite/guard.ts'

/** Small, as pages count and not bytes. */
const pageBytes = 512
const bytesOf = (path: string) => statSync(path).size

/**
 * A store that the writer's connection has open, with its checkpointer and guard.
 *
 * @param isFailing whether the disk fails under a pass of the writer
 */
function open(isFailing = () => false) {
  const file = join(temporaryFolder(), 'notes.db')
  new Database(file).exec(`pragma page_size = ${pageBytes}; vacuum`).close()
  const connection = openWriterConnection(file, 5_000)
  const prepare = connection.prepare.bind(connection)
  vi.spyOn(connection, 'prepare').mockImplementation(sql => {
    const statement = prepare(sql)
    const get = statement.get.bind(statement)
    if (sql.includes('passive')) {
      statement.get = () => {
        if (isFailing()) {
          throw new Database.SqliteError('disk I/O error', 'SQLITE_IOERR_WRITE')
        }
        return get()
      }
    }
    return statement
  })
  connection.exec('create table texts (id integer primary key, text text)')
  const guard = new FileGuard(connection)
  let passed = Promise.withResolvers<void>()
  const losses: string[] = []
  const failures: (string | undefined)[] = []
  const checkpointer = new Checkpointer({
    connection,
    descriptor: guard.descriptor,
    onPass: () => passed.resolve(),
    onFailureChange: reason => failures.push(reason),
    onLoss: reason => losses.push(reason),
  })
  const advance = (bulk = false, single = true) =>
    checkpointer.copyIfLong({ single, bulk })
  const close = async () => {
    if (!connection.open) {
      return
    }
    await checkpointer.stop()
    guard.close()
  }
  onTestFinished(close)
  const insert = connection.prepare('insert into texts (text) values (zeroblob(?))')
  const wal = () => {
    const [state] = connection.pragma('wal_checkpoint(noop)') as [
      { log: bigint; checkpointed: bigint },
    ]
    return { pages: Number(state.log), left: Number(state.log - state.checkpointed) }
  }
  return {
    ...{ file, connection, guard, checkpointer, advance, losses, failures, close, wal },
    /** Writes so many pages, and a few others. */
    write: (pages: number) => void insert.run(pages * (pageBytes - 4)),
    /** Resolves once the thread has copied something. */
    async pass() {
      passed = Promise.withResolvers()
      expect(advance()).toBeUndefined()
      await passed.promise
    },
    count: (of = connection) => of.prepare('select count(*) from texts').pluck().get(),
  }
}

/** Another connection reads, until the returned function is called. */
function readFrom(file: string) {
  const reader = new Database(file, { readonly: true })
  reader.exec('begin')
  reader.pragma('user_version')
  return () => reader.close()
}

test('from 8,000 pages on a thread copies the WAL, and the writer the last pages, so that it begins anew', async () => {
  const { file, write, wal, pass, advance, losses } = open()
  write(7_900)
  advance()
  expect(wal().left).toBe(wal().pages)
  const before = bytesOf(file)
  write(200)
  const endReading = readFrom(file)
  write(200)
  await pass()
  endReading()
  expect(bytesOf(file)).toBeGreaterThan(before + 8_000 * pageBytes)
  expect(wal().left).toBeGreaterThan(200)
  advance()
  expect(wal().left).toBe(0)
  write(1)
  expect(wal().pages).toBeLessThan(20)
  expect(losses).toEqual([])
})

test('the writer copies the WAL of bulk changes itself, beside single ones from 1,000 pages on', () => {
  const { write, wal, advance } = open()
  write(1_000)
  advance()
  advance(true, false)
  expect(wal().left).toBeGreaterThan(1_000)
  advance(true)
  expect(wal().left).toBe(0)
  write(8_000)
  advance(true, false)
  expect(wal().left).toBe(0)
})

test('the writer copies the WAL itself once it is three times as long', () => {
  const { write, wal, advance } = open()
  write(24_000)
  advance()
  expect(wal().left).toBe(0)
})

test('a WAL with an old state that another connection reads has at most 64,000 pages, and begins anew after it', async () => {
  const { file, write, wal, advance } = open()
  const endReading = readFrom(file)
  let refused: string | undefined
  while (refused === undefined) {
    write(4_000)
    refused = advance()
    await nextTurn()
  }
  expect(refused).toMatch(/an old state/)
  expect(wal().pages).toBeGreaterThanOrEqual(walPagesMax)
  expect(wal().pages).toBeLessThan(2 * walPagesMax)
  endReading()
  expect(advance()).toBeUndefined()
  write(1)
  expect(wal().pages).toBeLessThan(20)
})

test('a pass that fails is told once with its reason, as is the first that works, and a full WAL has that reason', () => {
  let isFailing = true
  const { write, advance, failures, losses } = open(() => isFailing)
  write(walPagesMax - 4_000)
  for (const _ of [1, 2]) {
    expect(advance(true)).toBeUndefined()
  }
  const reason = 'the disk fails (SQLITE_IOERR_WRITE)'
  expect(failures).toEqual([reason])
  write(4_000)
  expect(advance(true)).toBe(
    `its WAL is full, as it cannot be copied to the database: ${reason}`,
  )
  isFailing = false
  expect(advance(true)).toBeUndefined()
  expect([failures, losses]).toEqual([[reason, undefined], []])
})

test('without the thread the writer copies the WAL', async () => {
  const { file, write, wal, checkpointer, advance, losses } = open()
  write(8_000)
  // It finds no file when it starts.
  renameSync(file, `${file}-moved`)
  advance()
  await checkpointer.stop()
  renameSync(`${file}-moved`, file)
  expect(wal().left).toBeGreaterThan(8_000)
  advance()
  expect(wal().left).toBe(0)
  expect(losses).toEqual([])
})

test('after a failed fsync of copied pages no process begins the WAL anew, and the next that opens the store copies all of it', async () => {
  const { file, connection, write, pass, guard, close, count } = open()
  copyFileSync(file, `${file}-before`)
  write(9_000)
  const endReading = readFrom(file)
  write(1_000)
  await pass()
  endReading()
  guard.noteLostPages('the disk fails')
  expect(guard.findFault()).toMatchObject({
    reason: expect.stringMatching(/^the disk fails: stop/),
  })

  const other = new Database(file, { timeout: 100 })
  other.pragma('wal_checkpoint(truncate)')
  other.exec("insert into texts (text) values ('by another process')")
  other.close()
  expect(count()).toBe(3n)
  await close()
  expect(connection.open).toBe(false)
  // No page that was copied has reached the disk.
  copyFileSync(`${file}-before`, file)
  const after = openWriterConnection(file, 0)
  expect(count(after)).toBe(3n)
  expect(after.pragma('integrity_check', { simple: true })).toBe('ok')
  after.close()
})
