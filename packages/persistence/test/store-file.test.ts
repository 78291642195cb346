import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { NoStoreError, storeFiles } from '@plant-store/engine'
import { inspectStore, openReader, openStorage } from '@plant-store/persistence'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test, vi } from 'vitest'
import { plant, snapshot, temporaryFolder } from './store-folder.ts'

async function refusal(url: string, lockTimeoutMs?: number): Promise<string> {
  const { message } = await openStorage({
    url,
    ...(lockTimeoutMs && { lockTimeoutMs }),
  }).then(
    () => Promise.reject(new Error('it was opened')),
    (error: Error) => error,
  )
  return message
}

test.runIf(process.platform === 'linux')(
  'a store is not made where no folder can be',
  async () => {
    expect(await refusal('file:/proc/none/below/plants.db')).toMatch(
      /^the store \/proc\/none\/below\/plants\.db cannot be opened: no such file or folder$/,
    )
  },
)

test.each([
  ['a text', 'Water the plants.\n'.repeat(1000)],
  // SQLite itself takes it for an empty one.
  ['one byte', 'x'],
  ['the start of a header', 'SQLite format 3\0'],
])('%s is refused in one line, and left as it was', async (_, content) => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'plants.db'), content)
  const before = snapshot(folder)
  const reason = /^the store .*plants\.db cannot be opened: .*not a database$/
  expect(await refusal(`file:${join(folder, 'plants.db')}`)).toMatch(reason)
  expect(snapshot(folder)).toEqual(before)
})

test('a folder is no store, nor is a path below a file', async () => {
  const folder = temporaryFolder()
  const refused = `file:${folder}`
  expect(await refusal(refused)).toMatch(/^the store .* cannot be opened: [^\n]+$/)
  await expect(inspectStore(refused)).rejects.toThrow(/^\/.* is a folder$/)
  expect(readdirSync(folder)).toEqual([])

  writeFileSync(join(folder, 'notes.txt'), 'x')
  const before = snapshot(folder)
  const below = `file:${join(folder, 'notes.txt', 'plants.db')}`
  expect(await refusal(below)).toMatch(/^the store .* cannot be opened: [^\n]+$/)
  await expect(inspectStore(below)).rejects.toThrow(/^there is no store at /)
  await expect(openReader(below)).rejects.toBeInstanceOf(NoStoreError)
  expect(snapshot(folder)).toEqual(before)
})

test('a path that is too long for SQLite, or for the system, is named so', async () => {
  const folder = temporaryFolder()
  const longName = 'a'.repeat(200)
  const tooLongForSqlite = join(folder, longName, longName, longName, 'plants.db')
  const tooLongForAll = join(folder, 'a'.repeat(300), 'plants.db')

  expect(await refusal(`file:${tooLongForSqlite}`)).toMatch(
    /: the path is longer than 504 bytes, the most that SQLite takes$/,
  )
  expect(await refusal(`file:${tooLongForAll}`)).toMatch(/: the path is too long$/)
})

/** Returns what a process of a user without rights says when it opens a store. */
function openAsNobody(url: string): string {
  const program = fileURLToPath(new URL('store-process.ts', import.meta.url))
  const { stderr } = spawnSync(process.execPath, [...process.execArgv, program, url], {
    uid: 65_534,
    gid: 65_534,
    encoding: 'utf8',
  })
  return stderr
}

test.runIf(process.getuid?.() === 0).each([
  { suffix: '', reason: 'permission denied' },
  { suffix: '-wal', reason: '/plants.db-wal: permission denied' },
  { suffix: '-shm', reason: '/plants.db-shm: permission denied' },
])(
  'a store whose plants.db$suffix belongs to another user is refused with its name',
  async ({ suffix, reason }) => {
    const folder = temporaryFolder()
    const file = join(folder, 'plants.db')
    await using storage = await openStorage({ url: `file:${file}` })
    await storage.plants.insert(plant(1))
    chmodSync(folder, 0o777)
    for (const path of storeFiles(`file:${file}`).slice(0, 3)) {
      chmodSync(path, path === file + suffix ? 0o600 : 0o666)
    }

    const words = openAsNobody(`file:${file}`)

    expect(words).toMatch(/the store \S+plants\.db cannot be opened: [^\n]+/)
    expect(words).toContain(reason)
  },
)

test('a folder that a start creates is closed to others, whatever the umask', async () => {
  const umaskBefore = process.umask(0)
  onTestFinished(() => void process.umask(umaskBefore))
  const folder = join(temporaryFolder(), 'data', 'plants')

  const url = `file:${join(folder, 'plants.db')}`
  await (await openStorage({ url }))[Symbol.asyncDispose]()

  expect(statSync(folder).mode & 0o777).toBe(0o700)
  expect(statSync(dirname(folder)).mode & 0o777).toBe(0o700)
})

test.each(['pipe', '/dev/null'])(
  '%s is no store, and opening it does not wait',
  async name => {
    const folder = temporaryFolder()
    execFileSync('mkfifo', [join(folder, 'pipe')])
    const url = `file:${resolve(folder, name)}`
    expect(await refusal(url)).toMatch(
      /^the store .* cannot be opened: it is not a file$/,
    )
    for (const open of [openReader, inspectStore]) {
      await expect(open(url)).rejects.toThrow(/ is not a file$/)
    }
  },
)

test('a store that another program keeps locked is not opened, and one line says so', async () => {
  const file = join(temporaryFolder(), 'plants.db')
  await (await openStorage({ url: `file:${file}` }))[Symbol.asyncDispose]()
  const other = new Database(file)
  other.exec('begin immediate')
  expect(await refusal(`file:${file}`, 100)).toMatch(
    /^the store .* cannot be opened: [^\n]*locked[^\n]*$/,
  )
  other.close()
  await (await openStorage({ url: `file:${file}` }))[Symbol.asyncDispose]()
})

test('the SQLite of this package is newer than the bug that skips committed pages, and an older one is refused', async () => {
  const url = `file:${join(temporaryFolder(), 'plants.db')}`
  await (await openStorage({ url }))[Symbol.asyncDispose]()
  const prepare = Database.prototype.prepare
  let version = '3.51.2'
  const preparing = vi.spyOn(Database.prototype, 'prepare').mockImplementation(function (
    this: Database.Database,
    sql,
  ) {
    return prepare.call(
      this,
      sql === 'select sqlite_version()' ? `select '${version}'` : sql,
    )
  })
  onTestFinished(() => preparing.mockRestore())
  expect(await refusal(url)).toMatch(
    /: SQLite 3\.51\.2 can lose committed changes: 3\.51\.3 or newer is required$/,
  )
  version = '3.9.9'
  expect(await refusal(url)).toContain('3.9.9')
  version = '3.51.10'
  await (await openStorage({ url }))[Symbol.asyncDispose]()
})

test('opens a store several times at the same moment, also one that is not there yet', async () => {
  const url = `file:${join(temporaryFolder(), 'plants.db')}`
  const opened = await Promise.allSettled(
    Array.from({ length: 4 }, () => openStorage({ url })),
  )
  await using stack = new AsyncDisposableStack()
  const stores = opened
    .filter(each => each.status === 'fulfilled')
    .map(({ value }) => stack.use(value))
  expect(opened.filter(({ status }) => status === 'rejected')).toEqual([])
  await Promise.all(stores.map((store, n) => store.plants.insert(plant(n))))
  for (const store of stores) {
    expect((await store.plants.page({ limit: 10 })).length).toBe(stores.length)
  }
})

/** What the header says of the journal, when it is read and when it is written: 2 is a WAL. */
const journalOf = (file: string) => [...readFileSync(file).subarray(18, 20)]

test('a closed store has no WAL, so that it can be read where nothing can be written', async () => {
  const file = join(temporaryFolder(), 'plants.db')
  for (const opening of [1, 2]) {
    await using storage = await openStorage({ url: `file:${file}` })
    expect(journalOf(file)).toEqual([2, 2])
    await storage.plants.insert(plant(opening))
    await (await openReader(`file:${file}`))[Symbol.asyncDispose]()
    expect(readdirSync(dirname(file)).sort()).toEqual([
      'plants.db',
      'plants.db-shm',
      'plants.db-wal',
    ])
    await storage[Symbol.asyncDispose]()
    expect(journalOf(file)).toEqual([1, 1])
    expect(readdirSync(dirname(file))).toEqual(['plants.db'])
  }
  expect((await inspectStore(`file:${file}`)).counts.plants).toBe(2)
})

test('a store that another process has open keeps its WAL', async () => {
  const file = join(temporaryFolder(), 'plants.db')
  await using storage = await openStorage({ url: `file:${file}` })
  await storage.plants.insert(plant(1))
  const other = new Database(file)
  const count = other.prepare('select count(*) from plants').pluck()
  expect(count.get()).toBe(1)
  await storage[Symbol.asyncDispose]()
  expect(journalOf(file)).toEqual([2, 2])
  expect(count.get()).toBe(1)
  other.close()
})
