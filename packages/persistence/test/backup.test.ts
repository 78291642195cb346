import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { hashToken } from '@plant-store/access'
import { isDamage, readLastBackup, StoreInUseError } from '@plant-store/engine'
import { noTracer, trace } from '@plant-store/harness'
import { needs } from '@plant-store/harness/vitest'
import {
  backUpStore,
  inspectStore,
  openReader,
  openSalvage,
  openStorage,
  restoreStore,
} from '@plant-store/persistence'
import Database from 'better-sqlite3'
import { beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import {
  looks,
  openFilesIn,
  plant,
  plantId,
  schemaVersion,
  snapshot,
  temporaryFolder,
} from './store-folder.ts'

let folder: string
let file: string
let url: string
let backup: string

let empty: string
beforeAll(async () => {
  empty = join(mkdtempSync(join(tmpdir(), 'plant-store-')), 'empty.db')
  await (await openStorage({ url: `file:${empty}` }))[Symbol.asyncDispose]()
  return () => rmSync(dirname(empty), { recursive: true })
})
beforeEach(() => {
  folder = temporaryFolder()
  file = join(folder, 'store.db')
  url = `file:${file}`
  backup = join(folder, 'backup.db')
})

const many = (from: number, count: number) =>
  Array.from({ length: count }, (_, n) => plant(from + n, 'x'.repeat(200)))

/** Adds plants to the store, and creates it if needed. */
function load(from: number, count: number) {
  if (!existsSync(file)) {
    copyFileSync(empty, file)
  }
  const ids = `with recursive ids(id) as (select ${from} union all select id + 1 from ids limit ${count})`
  const insert = `insert into plants (id, name) select id, '${'x'.repeat(200)}' from ids`
  new Database(file).exec(`${ids} ${insert}`).close()
}

/** Adds a hundred plants, and copies the store as a killed server leaves it. */
async function crash(copy: string) {
  await using storage = await openStorage({ url })
  await storage.plants.insertAll(many(5_000, 100))
  for (const suffix of ['', '-wal']) {
    copyFileSync(file + suffix, copy + suffix)
  }
}

async function countPlants() {
  await using reader = await openReader(url)
  return (await reader.counts()).plants
}

const pageBytes = 4096

/**
 * Overwrites pages in the middle, so that the file still looks like a database from its
 * first page.
 */
function damage(path: string) {
  const descriptor = openSync(path, 'r+')
  const content = Buffer.alloc(pageBytes, 0x5a)
  for (let page = 40; page < 50; page++) {
    writeSync(descriptor, content, 0, pageBytes, page * pageBytes)
  }
  closeSync(descriptor)
}

/** Acts before SQLite copies pages into a file, and after. */
function aroundCopy(before: () => void, after?: (target: string) => void) {
  const copy = Database.prototype.backup
  const copying = vi
    .spyOn(Database.prototype, 'backup')
    .mockImplementation(async function (this: Database.Database, target) {
      before()
      const copied = await copy.call(this, target)
      after?.(target)
      return copied
    })
  onTestFinished(() => copying.mockRestore())
}

test('a backup under changes is the store as it was when it began', async () => {
  load(0, 20_000)
  await using storage = await openStorage({ url })
  let changes = 0
  const pages: number[] = []
  const report = await backUpStore(url, backup, {
    onProgress({ pages: done, ofPages }) {
      pages.push(done / ofPages)
      storage.plants.insert(plant(1_000_000 + changes++))
    },
  })
  expect(report).toMatchObject({
    store: backup,
    counts: { plants: 20_000, tokens: 0 },
    schemaVersion,
  })
  expect(changes).toBeGreaterThan(1)
  expect(pages, 'the progress grows').toEqual(pages.toSorted((a, b) => a - b))
  expect(pages.every(part => part >= 0 && part <= 1)).toBe(true)
  expect(readdirSync(folder).sort()).toEqual([
    'backup.db',
    'store.db',
    'store.db-shm',
    'store.db-wal',
    'store.db.last-backup',
  ])
  expect(await inspectStore(`file:${backup}`)).toMatchObject({
    counts: { plants: 20_000 },
  })
  expect(readFileSync(backup)[18], 'its header says that it has no WAL').toBe(1)
})

test('a copy and its name are on the disk before they are reported', async context => {
  load(0, 100)
  const tracer = await trace(process.pid, '/^(unlink|rename)')
  if (tracer === undefined) {
    return context.skip(noTracer)
  }
  await backUpStore(url, backup)
  const calls = (await tracer.detach()).filter(line => line.includes(folder))
  // The copy is whole once SQLite has removed its journal.
  const whole = calls.findLastIndex(line => /^\d+ +unlink.*\.part-journal/.test(line))
  const rest = calls
    .slice(whole + 1)
    .filter(line => !/^\d+ +unlink|last-backup/.test(line))
  expect(rest).toEqual([
    expect.stringMatching(/ fsync\(.*\.part>\) += 0/),
    expect.stringMatching(new RegExp(` fsync\\(\\d+<${folder}>\\) += 0`)),
    expect.stringMatching(/ rename.*\.part.* = 0/),
    expect.stringMatching(new RegExp(` fsync\\(\\d+<${folder}>\\) += 0`)),
  ])
})

test('the journal of a restore is gone before the restore is reported', async context => {
  load(0, 100)
  await backUpStore(url, backup)
  const tracer = await trace(process.pid, '/^unlink')
  if (tracer === undefined) {
    return context.skip(noTracer)
  }
  await restoreStore(url, backup, { force: true })
  const calls = (await tracer.detach()).filter(line => line.includes(folder))
  const committed = calls.findLastIndex(line =>
    /^\d+ +unlink.*store\.db-journal.* = 0/.test(line),
  )
  expect(calls.slice(committed + 1)).toContainEqual(
    expect.stringMatching(new RegExp(` fsync\\(\\d+<${folder}>\\) += 0`)),
  )
})

test.each([100, 20_000])(
  'a backup of %i plants that is given up or fails leaves what was there',
  async count => {
    load(0, count)
    writeFileSync(backup, 'what was there')
    const giveUp = new AbortController()
    const steps: number[] = []
    const backingUp = backUpStore(url, backup, {
      force: true,
      signal: giveUp.signal,
      onProgress({ pages }) {
        steps.push(pages)
        giveUp.abort()
      },
    })
    await expect(backingUp).rejects.toThrow(/could not be backed up/)
    expect(steps).toHaveLength(1)
    const nowhere = join(folder, 'no', 'backup.db')
    await expect(backUpStore(url, nowhere)).rejects.toThrow(
      `the store ${file} could not be backed up to ${nowhere}: no such file or folder`,
    )
    expect(readFileSync(backup, 'utf8')).toBe('what was there')
    expect(readdirSync(folder).sort()).toEqual(['backup.db', 'store.db'])
  },
)

test('what comes to the target while the copy is made is not replaced', async () => {
  load(0, 100)
  const onProgress = () => writeFileSync(backup, 'what came')
  await expect(backUpStore(url, backup, { onProgress })).rejects.toThrow('already exists')
  expect(readFileSync(backup, 'utf8')).toBe('what came')
})

test('a damaged copy is no backup', async () => {
  load(0, 3_000)
  aroundCopy(() => {}, damage)
  await expect(backUpStore(url, backup)).rejects.toThrow(/is damaged/)
  expect(readdirSync(folder)).toEqual(['store.db'])
})

test('a damaged store is not backed up', async () => {
  load(0, 3_000)
  damage(file)
  const error = await inspectStore(url).catch(error => error)
  expect(error.message).toMatch(
    / cannot be opened: it is damaged: [^\n]+ page \d+[^\n]+ page \d+[^\n]+$/,
  )
  expect(isDamage(error)).toBe(true)
  expect(openFilesIn(file)).toEqual([])
  await expect(backUpStore(url, backup)).rejects.toThrow(/is damaged/)
  expect(readdirSync(folder)).toEqual(['store.db'])
})

test('a store that was cut off is reported as damaged', async () => {
  load(0, 3_000)
  truncateSync(file, 100 * pageBytes)
  const message = `the store ${file} cannot be opened: it is damaged`
  const refusal = expect.objectContaining({ message })

  await expect(inspectStore(url)).rejects.toThrow(refusal)
  await expect(openStorage({ url })).rejects.toThrow(refusal)
  await expect(backUpStore(url, backup)).rejects.toThrow(/: it is damaged$/)
})

test.each([
  ['has more plants', () => load(1_000, 5_000)],
  ['has damaged pages', () => damage(file)],
])('a store that %s is what was backed up once it is restored', async (_, change) => {
  load(0, 1_000)
  await backUpStore(url, backup)
  change()
  expect(await restoreStore(url, backup, { force: true })).toMatchObject({
    store: file,
    counts: { plants: 1_000 },
  })
  expect(await inspectStore(url)).toMatchObject({ counts: { plants: 1_000 } })
  expect(readdirSync(folder).sort()).toEqual(['backup.db', 'store.db'])
  await using storage = await openStorage({ url })
  expect(await storage.plants.insert(plant(1_000))).toBe('inserted')
})

test('a store is restored where none is, without the WAL of one that was', async () => {
  load(0, 1_000)
  await backUpStore(url, backup)
  await crash(join(folder, 'stale'))
  rmSync(file)
  renameSync(join(folder, 'stale-wal'), `${file}-wal`)
  await expect(restoreStore(url, backup)).rejects.toThrow('store.db-wal already exists')
  await restoreStore(url, backup, { force: true })
  expect(await countPlants()).toBe(1_000)

  const elsewhere = `file:${folder}/a/new/folder/store.db`
  await restoreStore(elsewhere, backup)
  expect(await inspectStore(elsewhere)).toMatchObject({ counts: { plants: 1_000 } })
})

test.each<[string, () => Promise<AsyncDisposable>]>([
  ['an open store', () => openStorage({ url })],
  [
    'a transaction in the old journal mode',
    async () => {
      const database = new Database(file).exec('begin immediate')
      return { [Symbol.asyncDispose]: async () => void database.close() }
    },
  ],
])('%s is not replaced', async (_, hold) => {
  load(0, 1_000)
  await backUpStore(url, backup)
  load(1_000, 1_000)
  const holder = await hold()
  const startMs = performance.now()

  const restoring = restoreStore(url, backup, { force: true })

  await expect(restoring).rejects.toThrow(StoreInUseError)
  await expect(restoring).rejects.toMatchObject({ cause: { code: 'SQLITE_BUSY' } })
  // better-sqlite3 would wait for the lock for 5 seconds.
  expect(performance.now() - startMs, 'at once').toBeLessThan(4_000)
  await expect(restoring).rejects.toThrow(
    `the store ${file} is in use: stop the server first`,
  )
  // The advice to use --force would not help, so it is not given.
  await expect(restoreStore(url, backup)).rejects.toThrow(StoreInUseError)
  await holder[Symbol.asyncDispose]()
  expect(await countPlants()).toBe(2_000)
  await expect(restoreStore(url, backup)).rejects.toThrow(
    'already exists: use --force to replace it and lose the changes since the backup',
  )
})

test('a store that is locked just before the copy is not replaced', async () => {
  load(0, 100)
  await backUpStore(url, backup)
  load(100, 100)
  let other: Database.Database | undefined
  aroundCopy(() => {
    other = new Database(file).exec('begin immediate')
  })
  await expect(restoreStore(url, backup, { force: true })).rejects.toThrow(
    StoreInUseError,
  )
  other?.close()
  expect(await countPlants()).toBe(200)
})

test('a store that a server opens just before the copy is not replaced', async () => {
  load(0, 20_000)
  await backUpStore(url, backup)
  load(20_000, 100)
  const restoring = restoreStore(url, backup, {
    force: true,
    // A server that starts would create a WAL.
    onProgress: () => writeFileSync(`${file}-wal`, ''),
  })
  await expect(restoring).rejects.toThrow(StoreInUseError)
  rmSync(`${file}-wal`)
  expect(await countPlants()).toBe(20_100)
})

test('a backup is restored into a store with pages of another size', async () => {
  load(0, 1_000)
  const setPages = (bytes: number) =>
    new Database(file)
      .exec(`pragma journal_mode = delete; pragma page_size = ${bytes}; vacuum`)
      .close()
  setPages(1_024)
  await backUpStore(url, backup)
  load(1_000, 1_000)
  setPages(16_384)
  await restoreStore(url, backup, { force: true })
  expect(await inspectStore(url)).toMatchObject({
    counts: { plants: 1_000 },
    bytes: statSync(backup).size,
  })
})

test.each([
  ['damaged', () => damage(backup), /: it is damaged: .*: try another backup$/],
  [
    'cut off',
    () => truncateSync(backup, 100 * pageBytes),
    /: it is damaged: try another backup$/,
  ],
  ['empty', () => truncateSync(backup, 0), /: it is empty: try another backup$/],
  [
    'no database',
    () =>
      writeFileSync(
        backup,
        'a text that is long enough to have a header of its own'.repeat(9),
      ),
    /: file is not a database: try another backup$/,
  ],
  ['missing', () => rmSync(backup), /no such file/],
])(
  'a backup that is %s is refused, and the store left as it was',
  async (_, spoil, reason) => {
    load(0, 3_000)
    await backUpStore(url, backup)
    load(3_000, 1_000)
    spoil()
    await expect(restoreStore(url, backup, { force: true })).rejects.toThrow(reason)
    expect(await countPlants()).toBe(4_000)
    expect(readdirSync(folder)).not.toContainEqual(expect.stringMatching(/\.part$/))
  },
)

test('a damaged file is replaced by a backup, also with a WAL beside it', async () => {
  load(0, 1_000)
  await backUpStore(url, backup)
  truncateSync(backup, pageBytes)
  writeFileSync(`${backup}-wal`, '')
  await backUpStore(url, backup, { force: true })
  expect(await inspectStore(`file:${backup}`)).toMatchObject({
    counts: { plants: 1_000 },
  })
})

test.each([
  [
    'is no database',
    () => writeFileSync(file, 'no database any more, for whatever reason'.repeat(100)),
  ],
  ['is cut off', () => truncateSync(file, pageBytes)],
])('a store that %s is replaced with its WAL', async (_, spoil) => {
  load(0, 100)
  await backUpStore(url, backup)
  const crashed = join(folder, 'crashed.db')
  await crash(crashed)
  renameSync(crashed, file)
  spoil()
  renameSync(`${crashed}-wal`, `${file}-wal`)
  expect(await restoreStore(url, backup, { force: true })).toMatchObject({
    changed: undefined,
  })
  expect(readdirSync(folder).sort()).toEqual(['backup.db', 'store.db'])
  expect(await countPlants()).toBe(100)
})

test('a restore that is given up leaves the store as it was', async () => {
  load(0, 20_000)
  await backUpStore(url, backup)
  const lastBackup = await readLastBackup(url)
  load(20_000, 1_000)
  const giveUp = new AbortController()
  const restoring = restoreStore(url, backup, {
    force: true,
    signal: giveUp.signal,
    onProgress: () => giveUp.abort(),
  })
  await expect(restoring).rejects.toThrow(/could not be restored/)
  expect(await countPlants()).toBe(21_000)
  expect(readdirSync(folder).sort()).toEqual([
    'backup.db',
    'store.db',
    'store.db.last-backup',
  ])
  expect(await readLastBackup(url)).toEqual(lastBackup)
})

const existing = 'already exists: use --force to replace it'
test.each<{
  target: string
  create?: (path: string) => void
  force: boolean
  reason: string
}>([
  { target: 'store.db-wal', force: true, reason: ' belongs to FOLDER/store.db' },
  { target: 'store.db-shm', force: true, reason: ' belongs to FOLDER/store.db' },
  { target: 'store.db-journal', force: true, reason: ' belongs to FOLDER/store.db' },
  {
    target: 'link',
    create: path => symlinkSync(`${path}.target`, path),
    force: true,
    reason: ' is a link: name the file that it leads to',
  },
  {
    target: 'folder',
    create: path => mkdirSync(path),
    force: true,
    reason: ' is a folder',
  },
  { target: '/dev/null', force: true, reason: ' is not a file' },
  {
    target: 'file',
    create: path => writeFileSync(path, ''),
    force: false,
    reason: ` ${existing}`,
  },
  {
    target: 'left.db',
    create: path => writeFileSync(`${path}-journal`, ''),
    force: false,
    reason: `-journal ${existing}`,
  },
])(
  'a backup to $target is refused (force: $force)',
  async ({ target, create = () => {}, force, reason }) => {
    load(0, 100)
    const path = resolve(folder, target)
    create(path)
    const onProgress = vi.fn()

    const refused = backUpStore(url, path, { force, onProgress })

    const message = `${path}${reason.replace('FOLDER', folder)}`
    await expect(refused).rejects.toThrow(
      `the store ${file} could not be backed up to ${path}: ${message}`,
    )
    expect(onProgress).not.toHaveBeenCalled()
  },
)

const unlikeFiles: readonly [string, (path: string) => void, string][] = [
  ['a folder', path => mkdirSync(path), 'is a folder'],
  ['a pipe', path => execFileSync('mkfifo', [path]), 'is not a file'],
  ['a socket', bindSocket, 'is not a file'],
  ['a device', path => symlinkSync('/dev/null', path), 'is not a file'],
]

/** Leaves a socket, as a program does that was killed. */
function bindSocket(path: string): void {
  const bind =
    "require('net').createServer().listen(process.argv[1], () => process.kill(process.pid, 'SIGKILL'))"
  spawnSync(process.execPath, ['-e', bind, path])
}

describe.each(unlikeFiles)('a restore with %s', (_, create, reason) => {
  test('in the place of the store says what it is', async () => {
    load(0, 100)
    await backUpStore(url, backup)
    const other = join(folder, 'other.db')
    create(other)

    const refused = restoreStore(`file:${other}`, backup, { force: true })

    const path = realpathSync(other)
    await expect(refused).rejects.toThrow(
      `the store ${path} could not be restored from ${backup}: ${path} ${reason}`,
    )
  })

  test('in the place of the backup says what it is', async () => {
    create(backup)

    const refused = restoreStore(url, backup, { force: true })

    await expect(refused).rejects.toThrow(`: ${realpathSync(backup)} ${reason}`)
  })
})

test('a backup replaces what was left of another, if that is asked for', async () => {
  load(0, 100)
  writeFileSync(`${backup}-journal`, '')

  await backUpStore(url, backup, { force: true })

  expect(readdirSync(folder).sort()).toEqual([
    'backup.db',
    'store.db',
    'store.db.last-backup',
  ])
})

test('a backup may have the name of a WAL, if it is that of no store', async () => {
  load(0, 100)
  const named = join(folder, 'named-wal')

  await backUpStore(url, named)

  expect(existsSync(named)).toBe(true)
})

test('a copy is for those of the file that it replaces, never for all', async () => {
  load(0, 100)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  chmodSync(file, 0o644)
  await (await openStorage({ url }))[Symbol.asyncDispose]()
  expect(statSync(file).mode & 0o777).toBe(0o640)
  const { store } = await backUpStore(url, backup)
  expect(statSync(store).mode & 0o777).toBe(0o600)
  const owner = process.getuid?.() === 0 ? 1 : statSync(backup).uid
  chownSync(backup, owner, statSync(backup).gid)
  chmodSync(backup, 0o666)
  await backUpStore(url, backup, { force: true })
  expect(statSync(backup)).toMatchObject({ uid: owner, mode: 0o100660 })
  chmodSync(file, 0o644)
  await restoreStore(url, backup, { force: true })
  expect(statSync(file).mode & 0o777).toBe(0o640)
})

describe('the time of the last backup', () => {
  let time: string
  beforeEach(() => {
    load(0, 100)
    time = `${file}.last-backup`
  })

  async function backUp(named = url) {
    const report = await backUpStore(named, backup, { force: true })
    expect(report).not.toHaveProperty('unrecorded')
    return readLastBackup(named)
  }

  test('is that at which it began', async () => {
    expect(await readLastBackup(url), 'before').toBeNull()
    const startMs = Date.now()

    const at = await backUp()

    expect(at?.getTime()).toBeGreaterThanOrEqual(startMs)
    expect(at?.getTime()).toBeLessThanOrEqual(Date.now())
    expect(statSync(time).mode & 0o777).toBe(0o600)
  })

  test('stays if another backup fails', async () => {
    const at = await backUp()

    await expect(backUpStore(url, backup)).rejects.toThrow('already exists')

    expect(await readLastBackup(url)).toEqual(at)
  })

  test('is the same by a link to the store', async () => {
    const link = join(folder, 'link.db')
    symlinkSync(file, link)

    const at = await backUp(`file:${link}`)

    expect(at).not.toBeNull()
    expect(await readLastBackup(url)).toEqual(at)
  })

  test('ends with a restore, even by a link', async () => {
    const link = join(folder, 'link.db')
    symlinkSync(file, link)
    await backUp()

    await restoreStore(`file:${link}`, backup, { force: true })

    expect(readlinkSync(link)).toBe(file)
    expect(await readLastBackup(url)).toBeNull()
    expect(await readLastBackup(`file:${backup}`)).toBeNull()
  })

  test('ends with a restore in the place of a removed store', async () => {
    await backUp()
    rmSync(file)

    await restoreStore(url, backup)

    expect(await readLastBackup(url)).toBeNull()
  })

  test('ends with a new store in the place of a removed one', async () => {
    await backUp()
    rmSync(file)

    await (await openStorage({ url }))[Symbol.asyncDispose]()

    expect(await readLastBackup(url)).toBeNull()
  })

  test("replaces another user's link and leaves its target", async () => {
    const precious = join(folder, 'precious')
    writeFileSync(precious, 'kept')
    symlinkSync(precious, time)

    await backUp()

    expect(readFileSync(precious, 'utf8')).toBe('kept')
  })

  test('is unknown if its file holds something else', async () => {
    writeFileSync(time, 'no time')

    expect(await readLastBackup(url)).toBeNull()
  })

  test('is not taken for none if its file cannot be read', async () => {
    mkdirSync(time)

    await expect(readLastBackup(url)).rejects.toThrow(
      'the time of the last backup cannot be read: it is a folder',
    )
  })

  test('is reported as unrecorded if it cannot be written or removed', async () => {
    mkdirSync(time)

    const report = await backUpStore(url, backup, { force: true })
    expect(report).toMatchObject({ unrecorded: 'it is a folder' })

    await expect(restoreStore(url, backup, { force: true })).rejects.toThrow(
      `the store ${file} was restored, but the time of its last backup could not be removed: `,
    )
  })

  test('is not known of a database on a server', async () => {
    expect(await readLastBackup('postgres://127.0.0.1/plants')).toBeUndefined()
  })
})

test('what a killed backup left in a folder is removed after a day', async () => {
  load(0, 100)
  const left = (name: string, hours: number) => {
    const then = Date.now() / 1_000 - hours * 3_600
    writeFileSync(join(folder, name), '')
    utimesSync(join(folder, name), then, then)
  }
  left('.plant-store-0123456789ab.part', 25)
  left('.plant-store-0123456789ab.part-journal', 25)
  left('.plant-store-0123456789ac.part', 23)
  left('.plant-store-of-others.part', 25)
  left('old.backup', 25)
  await backUpStore(url, backup)
  expect(readdirSync(folder).sort()).toEqual([
    '.plant-store-0123456789ac.part',
    '.plant-store-of-others.part',
    'backup.db',
    'old.backup',
    'store.db',
    'store.db.last-backup',
  ])
})

test('a store restored in a new place belongs to the owner of its folder', {
  ...needs('root', process.getuid?.() === 0),
}, async () => {
  load(0, 100)
  await backUpStore(url, backup)
  rmSync(file)
  chownSync(folder, 1, 2)
  chmodSync(folder, 0o777)
  await restoreStore(url, backup)
  expect(statSync(file)).toMatchObject({ uid: 1, gid: 2, mode: 0o100600 })
})

describe('a WAL beside a backup', () => {
  interface Act {
    readonly name: string
    readonly act: (path: string) => Promise<unknown>
  }
  const acts: readonly Act[] = [
    { name: 'inspectStore', act: path => inspectStore(`file:${path}`) },
    { name: 'openReader', act: path => openReader(`file:${path}`) },
    { name: 'openSalvage', act: path => openSalvage(`file:${path}`) },
    { name: 'openStorage', act: path => openStorage({ url: `file:${path}` }) },
    {
      name: 'backUpStore',
      act: path => backUpStore(`file:${path}`, join(folder, 'second')),
    },
    {
      name: 'restoreStore to it',
      act: path => restoreStore(`file:${path}`, file, { force: true }),
    },
    {
      name: 'restoreStore from it',
      act: path => restoreStore(url, path, { force: true }),
    },
  ]

  test.each(acts)('is not its own to $name', async ({ act }) => {
    load(0, 100)
    await backUpStore(url, backup)
    const crashed = join(folder, 'crashed.db')
    await crash(crashed)
    copyFileSync(`${crashed}-wal`, `${backup}-wal`)
    const link = join(folder, 'link')
    symlinkSync(backup, link)
    const before = snapshot(folder)
    const refusal = `: ${backup}-wal is the WAL of another store: move it away`

    await expect(act(backup), 'by its name').rejects.toThrow(refusal)
    await expect(act(link), 'by a link').rejects.toThrow(refusal)

    expect(snapshot(folder)).toEqual(before)
  })

  test('is its own if it is a copy of a store that was killed', async () => {
    load(0, 100)
    const crashed = join(folder, 'crashed.db')
    await crash(crashed)

    const report = await restoreStore(url, crashed, { force: true })

    expect(report).toMatchObject({ counts: { plants: 200 } })
  })
})

test('the size of a store includes its WAL', async () => {
  load(0, 1)
  await using storage = await openStorage({ url })
  await storage.plants.insertAll(many(1, 1_000))
  const bytesOf = (suffix: string) => statSync(file + suffix).size
  expect((await inspectStore(url)).bytes).toBe(
    bytesOf('') + bytesOf('-wal') + bytesOf('-shm'),
  )
  expect((await backUpStore(url, backup)).bytes).toBe(statSync(backup).size)
})

/** Returns the files of a folder, without the times of last backups. */
function storesIn(folder: string): Record<string, string> {
  const files = Object.entries(snapshot(folder))
  return Object.fromEntries(files.filter(([name]) => !name.endsWith('.last-backup')))
}

describe.each(looks)('$name', ({ look }) => {
  test('changes no byte of a store, a backup or a copy of a killed store', async () => {
    load(0, 100)
    await backUpStore(url, backup)
    const crashed = join(folder, 'crashed.db')
    await crash(crashed)
    const withoutWal = join(folder, 'without-wal.db')
    copyFileSync(crashed, withoutWal)
    const before = storesIn(folder)

    const plantsIn = {
      store: await look(url),
      backup: await look(`file:${backup}`),
      crashed: await look(`file:${crashed}`),
      withoutWal: await look(`file:${withoutWal}`),
    }

    expect(plantsIn).toEqual({
      store: 200,
      backup: 100,
      crashed: 200,
      withoutWal: 100,
    })
    // SQLite needs the shm to find pages in the WAL.
    expect(storesIn(folder)).toEqual({ ...before, 'crashed.db-shm': expect.anything() })
  })

  test('changes no byte of a store in use, but its shm', async () => {
    await using storage = await openStorage({ url })
    await storage.plants.insert(plant(9_000))
    const before = storesIn(folder)

    const plants = await look(url)

    expect(plants).toBe(1)
    const shm = { 'store.db-shm': expect.anything() }
    expect(storesIn(folder)).toEqual({ ...before, ...shm })
  })

  test('refuses a change that was interrupted, and leaves it', async () => {
    load(0, 1_000)
    const copy = join(folder, 'copy.db')
    interruptChange(copy)
    const before = snapshot(folder)

    await expect(look(`file:${copy}`)).rejects.toThrow(
      /: a change was interrupted: start the server, which takes it back/,
    )

    expect(snapshot(folder)).toEqual(before)
  })

  test('keeps the locks of a store that this process has open', async () => {
    await using storage = await openStorage({ url })
    await storage.plants.insert(plant(1))

    await look(url)

    expect(restoreInAnotherProcess()).toContain('is in use: stop the server first')
  })
})

/** Copies the store as it is in the middle of a change without a WAL. */
function interruptChange(copy: string) {
  const interrupted = new Database(file)
  interrupted.exec('pragma cache_size = 1; begin; update plants set name = name || 1')
  for (const suffix of ['', '-journal']) {
    copyFileSync(file + suffix, copy + suffix)
  }
  interrupted.close()
}

/** Returns the errors of a process that restores the store. */
function restoreInAnotherProcess(): string {
  const restore = `
    const { restoreStore } = await import('@plant-store/persistence')
    await restoreStore('${url}', '${empty}', { force: true })`
  const node = ['--conditions=plant-store-source', '--input-type=module', '-e', restore]
  const options = { encoding: 'utf8', cwd: import.meta.dirname } as const
  return spawnSync(process.execPath, node, options).stderr
}

test('a start takes a change back that was interrupted', async () => {
  load(0, 1_000)
  const copy = join(folder, 'copy.db')
  interruptChange(copy)

  await (await openStorage({ url: `file:${copy}` }))[Symbol.asyncDispose]()

  const report = await inspectStore(`file:${copy}`)
  expect(report).toMatchObject({ counts: { plants: 1_000 } })
})

test('a restore reports which tokens it brought back, and which it lost', async () => {
  const insert = async (...names: string[]) => {
    await using storage = await openStorage({ url })
    for (const name of names) {
      await storage.tokens.insert(
        { name, scopes: [], createdAt: new Date(0) },
        hashToken(name),
      )
    }
  }
  await insert('b', 'a', 'kept')
  await backUpStore(url, backup)
  {
    await using storage = await openStorage({ url })
    for (const name of ['a', 'b']) {
      await storage.tokens.remove(name)
    }
  }
  await insert('new')
  expect(await restoreStore(url, backup, { force: true })).toMatchObject({
    counts: { tokens: 3 },
    changed: { tokens: { again: ['a', 'b'], lost: ['new'] } },
  })
  expect(await restoreStore(`file:${folder}/other.db`, backup)).toMatchObject({
    changed: { tokens: { again: [], lost: [] } },
  })
})

test('what was replaced or removed is in no later backup or closed store', async () => {
  const names = Array.from({ length: 100 }, () => crypto.randomUUID())
  const namesIn = (path: string) => {
    const bytes = readFileSync(path)
    return names.filter(name => bytes.includes(name)).length
  }
  {
    await using storage = await openStorage({ url })
    for (const [n, name] of names.entries()) {
      await storage.plants.save(plant(n >> 1, name))
    }
    await backUpStore(url, backup)
    expect(namesIn(backup), 'those that replaced others').toBe(50)
    for (let n = 0; n < 50; n++) {
      await storage.plants.remove(plantId(n))
    }
    await backUpStore(url, backup, { force: true })
    expect(namesIn(backup)).toBe(0)
  }
  expect(namesIn(file)).toBe(0)
})

test('what is no file is not backed up or restored', async () => {
  const message =
    'postgres://flora@db/plants is not a file: use pg_dump to back it up, and pg_restore'
  const store = 'postgres://flora:secret@db/plants'
  await expect(backUpStore(store, backup)).rejects.toThrow(
    expect.objectContaining({ message }),
  )
  await expect(restoreStore(store, backup)).rejects.toThrow(
    expect.objectContaining({ message }),
  )
})
