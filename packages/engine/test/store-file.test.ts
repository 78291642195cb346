import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { NoStoreError, storageName } from '@plant-store/engine'
import { needs, temporaryFolder } from '@plant-store/harness/vitest'
import Database from 'better-sqlite3'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  backUpStore,
  inspectStore,
  note,
  openReader,
  openStorage,
  restoreStore,
} from './notes.ts'
import { changeBySql, createStore, newFile, openFilesIn, snapshot } from './places.ts'

/** Returns why a store was not opened. */
async function refusal(url: string, lockTimeoutMs = 5_000): Promise<string> {
  try {
    await using _storage = await openStorage({ url, lockTimeoutMs })
  } catch (error) {
    return error instanceof Error ? error.message : `${error}`
  }
  throw new Error('the store was opened')
}

describe('no store is made', () => {
  test('where no folder can be', { skip: process.platform !== 'linux' }, async () => {
    expect(await refusal('file:/proc/none/below/notes.db')).toMatch(
      /^the store \/proc\/none\/below\/notes\.db cannot be opened: no such file or folder$/,
    )
  })

  test('of a path that is too long for SQLite or the system', async () => {
    const folder = temporaryFolder()
    const longName = 'a'.repeat(200)
    const tooLongForSqlite = join(folder, longName, longName, longName, 'notes.db')
    const tooLongForAll = join(folder, 'a'.repeat(300), 'notes.db')

    expect(await refusal(`file:${tooLongForSqlite}`)).toMatch(
      /: the path is longer than 504 bytes, the most that SQLite takes$/,
    )
    expect(await refusal(`file:${tooLongForAll}`)).toMatch(/: the path is too long$/)
  })

  test('of a folder or below a file', async () => {
    const folder = temporaryFolder()
    const url = `file:${folder}`
    expect(await refusal(url)).toMatch(/^the store .* cannot be opened: [^\n]+$/)
    await expect(inspectStore(url)).rejects.toThrow(/^\/.* is a folder$/)
    expect(readdirSync(folder)).toEqual([])

    writeFileSync(join(folder, 'notes.txt'), 'x')
    const before = snapshot(folder)
    const below = `file:${join(folder, 'notes.txt', 'notes.db')}`
    expect(await refusal(below)).toMatch(/^the store .* cannot be opened: [^\n]+$/)
    await expect(inspectStore(below)).rejects.toThrow(/^there is no store at /)
    await expect(openReader(below)).rejects.toBeInstanceOf(NoStoreError)
    await expect(openReader(`${url}/none.db`)).rejects.toThrow(
      `there is no store at ${folder}/none.db`,
    )
    expect(snapshot(folder)).toEqual(before)
  })

  test.each([
    ['a text', 'Water the garden.\n'.repeat(1000)],
    // SQLite itself takes it for an empty one.
    ['one byte', 'x'],
  ])('of %s, which is left as it was', async (_, content) => {
    const file = newFile()
    writeFileSync(file, content)
    const before = snapshot(dirname(file))

    // A wait for a lock would last longer than the test may.
    const words = await refusal(`file:${file}`, 600_000)

    expect(words).toMatch(/^the store .*notes\.db cannot be opened: .*not a database$/)
    expect(snapshot(dirname(file))).toEqual(before)
  })

  test('of a pipe, without a wait', async () => {
    const pipe = join(temporaryFolder(), 'pipe')
    execFileSync('mkfifo', [pipe])
    const url = `file:${pipe}`

    expect(await refusal(url)).toMatch(
      /^the store .* cannot be opened: it is not a file$/,
    )
    await expect(openReader(url)).rejects.toThrow(/ is not a file$/)
    await expect(inspectStore(url)).rejects.toThrow(/ is not a file$/)
  })
})

/**
 * Returns what a process of a user without rights says when it opens each of these, plans
 * to open stores in the folder, and copies from and to a closed one.
 */
function openAsNobody(stores: readonly string[], closedFolder: string): string[] {
  // It has loaded all sources before it gives up its rights to read them.
  const program = `
    const { backUpStore, openStorage, planOpening, restoreStore } = await import('./notes.ts')
    const { openWriterConnection } = await import('../src/sqlite/connection.ts')
    const { withReason } = await import('../src/sqlite/with-reason.ts')
    await import('../src/sqlite/store.ts')
    await import('../src/sqlite/backup.ts')
    process.setgroups([])
    process.setgid(65534)
    process.setuid(65534)
    const say = error => console.log(error.message)
    for (const file of ${JSON.stringify(stores)}) {
      await openStorage({ url: 'file:' + file }).catch(say)
    }
    const file = '${closedFolder}/notes.db'
    await withReason(() => openWriterConnection(file, 0), file).catch(say)
    for (const name of ['notes.db', 'none.db', 'below/none.db']) {
      await planOpening('file:${closedFolder}/' + name).catch(say)
    }
    const closed = '${closedFolder}/closed.db'
    await backUpStore('file:' + closed, 'backup').catch(say)
    await restoreStore('file:' + closed, file, { force: true }).catch(say)
    await restoreStore('file:new.db', closed).catch(say)`
  const node = ['--conditions=plant-store-source', '--input-type=module', '-e', program]
  const options = { encoding: 'utf8', cwd: import.meta.dirname } as const
  const { stdout, stderr } = spawnSync(process.execPath, node, options)
  return `${stdout}${stderr}`.trim().split('\n')
}

test('a user without rights is refused with the name of what is closed', {
  ...needs('root', process.getuid?.() === 0),
}, async () => {
  await using stack = new AsyncDisposableStack()
  const stores: string[] = []
  for (const closed of ['', '-wal', '-shm']) {
    const file = newFile()
    stores.push(file)
    const storage = stack.use(await openStorage({ url: `file:${file}` }))
    await storage.notes.insert(note(1))
    chmodSync(dirname(file), 0o777)
    for (const suffix of ['', '-wal', '-shm']) {
      chmodSync(file + suffix, suffix === closed ? 0o600 : 0o666)
    }
  }
  const closedFolder = temporaryFolder()
  await createStore(`file:${closedFolder}/notes.db`)
  chmodSync(closedFolder, 0o755)
  chmodSync(`${closedFolder}/notes.db`, 0o666)
  const closed = `${closedFolder}/closed.db`
  await createStore(`file:${closed}`)

  const words = openAsNobody(stores, closedFolder)

  const [ofStore, ofWal, ofShm] = stores.map(
    file => `the store ${file} cannot be opened: `,
  )
  expect(words).toEqual([
    `${ofStore}permission denied`,
    expect.stringMatching(`^${ofWal}.*/notes.db-wal: permission denied$`),
    expect.stringMatching(`^${ofShm}.*/notes.db-shm: permission denied$`),
    `no file can be created in ${closedFolder}: permission denied`,
    `the store ${closedFolder}/notes.db cannot be opened: permission denied`,
    `the store ${closedFolder}/none.db cannot be opened: permission denied`,
    `the store ${closedFolder}/below/none.db cannot be opened: permission denied`,
    `the store ${closed} could not be backed up to backup: ${closed}: permission denied`,
    `the store ${closed} could not be restored from ${closedFolder}/notes.db: ${closed}: permission denied`,
    expect.stringMatching(
      ` could not be restored from ${closed}: ${closed}: permission denied$`,
    ),
  ])
})

test('a folder that a start creates is closed to others, whatever the umask', async () => {
  const umaskBefore = process.umask(0)
  onTestFinished(() => void process.umask(umaskBefore))
  const folder = join(temporaryFolder(), 'data', 'notes')

  await createStore(`file:${join(folder, 'notes.db')}`)

  expect(statSync(folder).mode & 0o777).toBe(0o700)
  expect(statSync(dirname(folder)).mode & 0o777).toBe(0o700)
})

test('a store that another program keeps locked is not opened', async () => {
  const file = newFile()
  await createStore(`file:${file}`)
  const other = new Database(file)
  other.exec('begin immediate')

  const words = await refusal(`file:${file}`, 100)
  other.close()

  expect(words).toMatch(/^the store .* cannot be opened: [^\n]*locked[^\n]*$/)
  await createStore(`file:${file}`)
})

test('this SQLite skips no committed page after a checkpoint', () => {
  // 3.7.0 to 3.51.2 can (sqlite.org/wal.html, "The WAL-Reset Bug").
  const connection = new Database(':memory:')
  const version = `${connection.prepare('select sqlite_version()').pluck().get()}`

  const order = version.localeCompare('3.51.3', 'en', { numeric: true })

  expect(order, version).toBeGreaterThanOrEqual(0)
})

describe('a WAL', () => {
  /**
   * Returns what the header says of the journal for reading and for writing. 2 is a WAL,
   * and 1 is none.
   */
  const journalOf = (file: string) => [...readFileSync(file).subarray(18, 20)]

  test('is there while a store is in use, and not once it is closed', async () => {
    const file = newFile()
    const filesBeside = () => readdirSync(dirname(file)).sort()
    for (const time of ['first', 'second']) {
      {
        await using storage = await openStorage({ url: `file:${file}` })
        await storage.notes.insert(note(1))
        await (await openReader(`file:${file}`))[Symbol.asyncDispose]()
        expect(journalOf(file), time).toEqual([2, 2])
        const inUse = ['notes.db', 'notes.db-shm', 'notes.db-wal']
        expect(filesBeside(), time).toEqual(inUse)
      }

      expect(journalOf(file), `closed the ${time} time`).toEqual([1, 1])
      expect(filesBeside(), `closed the ${time} time`).toEqual(['notes.db'])
    }
    const report = await inspectStore(`file:${file}`)
    expect(report.counts.notes).toBe(1)
  })

  test('is kept by a store that another program has open', async () => {
    const file = newFile()
    const storage = await openStorage({ url: `file:${file}` })
    await storage.notes.insert(note(1))
    const other = new Database(file)
    const count = other.prepare('select count(*) from notes').pluck()
    expect(count.get()).toBe(1)

    await storage[Symbol.asyncDispose]()

    expect(journalOf(file)).toEqual([2, 2])
    expect(count.get()).toBe(1)
    other.close()
  })
})

const bringBackNotes = `
  create trigger back after delete on notes begin
    insert into notes values (old.id, old.text, null);
  end`

test.each([
  {
    what: 'a trigger',
    statements: bringBackNotes,
    reason: 'it contains trigger back, and a store has only tables and indexes',
  },
  {
    what: 'a column that its table computes',
    statements: `
      drop table notes;
      create table notes (id integer primary key, text text, topic text as (0))`,
    reason: 'its schema is not of this release: cannot INSERT into generated column',
  },
])('a store with $what is not opened, read or copied', async ({ statements, reason }) => {
  const file = newFile()
  const url = `file:${file}`
  await createStore(url)
  changeBySql(file, statements)
  const before = snapshot(dirname(file))
  const target = newFile()
  const message = `the store ${storageName(url)} cannot be opened: ${reason}`

  await expect(openStorage({ url })).rejects.toThrow(message)
  await expect(openReader(url)).rejects.toThrow(message)
  await expect(inspectStore(url)).rejects.toThrow(message)
  await expect(backUpStore(url, target)).rejects.toThrow(reason)
  await expect(restoreStore(`file:${target}`, file)).rejects.toThrow(reason)

  expect(openFilesIn(file)).toEqual([])
  expect(snapshot(dirname(file))).toEqual(before)
  expect(existsSync(target)).toBe(false)
})

test('a restore replaces a store whose schema was changed', async () => {
  const file = newFile()
  const url = `file:${file}`
  await createStore(url)
  copyFileSync(file, `${file}.backup`)
  changeBySql(file, bringBackNotes)

  await restoreStore(url, `${file}.backup`, { force: true })

  const { counts } = await inspectStore(url)
  expect(counts).toMatchObject({ notes: 0 })
})

test('a store is closed whole while others still have an end of it', async () => {
  const file = newFile()
  const storage = await openStorage({ url: `file:${file}` })
  storage.share()
  await storage.notes.insert(note(1))

  await storage[Symbol.asyncDispose]()

  expect(readdirSync(dirname(file))).toEqual(['notes.db'])
})

test('an index and a table of somebody else change nothing for a store', async () => {
  const file = newFile()
  const url = `file:${file}`
  await createStore(url)
  changeBySql(
    file,
    `create table _litestream_seq (id integer primary key, seq integer);
    create index notes_by_text on notes (text);
    analyze`,
  )

  await createStore(url)

  const { counts } = await inspectStore(url)
  expect(counts).toMatchObject({ notes: 0 })
})
