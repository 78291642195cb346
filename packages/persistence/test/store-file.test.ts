import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { NoStoreError, storeFiles } from '@plant-store/engine'
import { commandProgram } from '@plant-store/harness'
import { inspectStore, openReader, openStorage } from '@plant-store/persistence'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test, vi } from 'vitest'
import { plant, snapshot, temporaryFolder } from './store-folder.ts'

/** Returns why a store was not opened. */
async function refusal(url: string, lockTimeoutMs = 5_000): Promise<string> {
  try {
    await using _storage = await openStorage({ url, lockTimeoutMs })
  } catch (error) {
    return error instanceof Error ? error.message : `${error}`
  }
  throw new Error('the store was opened')
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

/**
 * Copies what the command line needs to a folder that everybody may read, as the clone
 * may be closed to others.
 */
function copyProgram(): string {
  const folder = temporaryFolder()
  const driver = dirname(
    createRequire(import.meta.url).resolve('better-sqlite3/package.json'),
  )
  cpSync(process.execPath, join(folder, 'node'))
  cpSync(dirname(commandProgram), join(folder, 'dist'), { recursive: true })
  cpSync(join(dirname(commandProgram), '../package.json'), join(folder, 'package.json'))
  for (const part of ['package.json', 'lib', 'build', 'prebuilds']) {
    const from = join(driver, part)
    const to = join(folder, 'node_modules/better-sqlite3', part)
    if (existsSync(from)) {
      cpSync(from, to, { recursive: true, dereference: true })
    }
  }
  execFileSync('chmod', ['-R', 'a+rX', folder])
  return folder
}

/** Returns what a command of a user without rights says when it opens a store. */
function openAsNobody(url: string): string {
  const folder = copyProgram()
  const command = [join(folder, 'dist/main.js'), 'token', 'create', '--name', 'a']
  const { stderr } = spawnSync(join(folder, 'node'), command, {
    uid: 65_534,
    gid: 65_534,
    cwd: folder,
    env: { DATABASE_URL: url },
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

test.runIf(process.getuid?.() === 0)(
  'a store in a folder that may not be written is refused with its name',
  async () => {
    const folder = temporaryFolder()
    const file = join(folder, 'plants.db')
    await (await openStorage({ url: `file:${file}` }))[Symbol.asyncDispose]()
    chmodSync(folder, 0o755)
    chmodSync(file, 0o666)

    const words = openAsNobody(`file:${file}`)

    expect(words).toContain(`no file can be created in ${folder}: permission denied`)
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
    await expect(openReader(url)).rejects.toThrow(/ is not a file$/)
    await expect(inspectStore(url)).rejects.toThrow(/ is not a file$/)
  },
)

test('a store that another program keeps locked is not opened', async () => {
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

/** Lets SQLite report a version until the test ends. */
function reportSqlite(version: string) {
  const prepare = Database.prototype.prepare
  const preparing = vi.spyOn(Database.prototype, 'prepare').mockImplementation(function (
    this: Database.Database,
    sql,
  ) {
    const isAsked = sql === 'select sqlite_version()'
    return prepare.call(this, isAsked ? `select '${version}'` : sql)
  })
  onTestFinished(() => preparing.mockRestore())
}

test.each(['3.51.2', '3.9.9'])(
  'SQLite %s, which can skip committed pages, is refused',
  async version => {
    const url = `file:${join(temporaryFolder(), 'plants.db')}`
    reportSqlite(version)

    expect(await refusal(url)).toContain(
      `: SQLite ${version} can lose committed changes: 3.51.3 or newer is required`,
    )
  },
)

test('SQLite 3.51.10 opens a store, as does that of this package', async () => {
  const url = `file:${join(temporaryFolder(), 'plants.db')}`
  await (await openStorage({ url }))[Symbol.asyncDispose]()
  reportSqlite('3.51.10')

  await (await openStorage({ url }))[Symbol.asyncDispose]()
})

test('a new store is opened several times at the same moment', async () => {
  const url = `file:${join(temporaryFolder(), 'plants.db')}`
  await using stack = new AsyncDisposableStack()
  const open = async () => stack.use(await openStorage({ url }))

  const opening = Array.from({ length: 4 }, open)
  const stores = await Promise.all(opening)
  const inserting = stores.map(({ plants }, id) => plants.insert(plant(id)))
  await Promise.all(inserting)

  const listing = stores.map(({ plants }) => plants.page({ limit: 10 }))
  const counts = (await Promise.all(listing)).map(plants => plants.length)
  expect(counts).toEqual([4, 4, 4, 4])
})

/**
 * Returns what the header says of the journal for reading and for writing. 2 is a WAL,
 * and 1 is none.
 */
const journalOf = (file: string) => [...readFileSync(file).subarray(18, 20)]

test('a store in use has a WAL, and a closed one has none', async () => {
  const file = join(temporaryFolder(), 'plants.db')
  const filesBeside = () => readdirSync(dirname(file)).sort()
  {
    await using storage = await openStorage({ url: `file:${file}` })
    await storage.plants.insert(plant(1))
    await (await openReader(`file:${file}`))[Symbol.asyncDispose]()
    expect(journalOf(file)).toEqual([2, 2])
    expect(filesBeside()).toEqual(['plants.db', 'plants.db-shm', 'plants.db-wal'])
  }

  expect(journalOf(file), 'closed').toEqual([1, 1])
  expect(filesBeside(), 'closed').toEqual(['plants.db'])
  const report = await inspectStore(`file:${file}`)
  expect(report.counts.plants).toBe(1)
})

test('a closed store that is opened again has a WAL again, and then none', async () => {
  const file = join(temporaryFolder(), 'plants.db')
  await (await openStorage({ url: `file:${file}` }))[Symbol.asyncDispose]()
  {
    await using storage = await openStorage({ url: `file:${file}` })
    await storage.plants.insert(plant(1))
    expect(journalOf(file)).toEqual([2, 2])
  }

  expect(journalOf(file)).toEqual([1, 1])
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
