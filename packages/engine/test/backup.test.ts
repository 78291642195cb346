import { spawnSync } from 'node:child_process'
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
import { dirname, join } from 'node:path'
import { isDamage, readLastBackup, StoreInUseError } from '@plant-store/engine'
import { needs, temporaryFolder, traceOrSkip } from '@plant-store/harness/vitest'
import Database from 'better-sqlite3'
import { beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  backUpStore,
  inspectStore,
  note,
  openStorage,
  planOpening,
  restoreStore,
} from './notes.ts'
import { changeBySql, createStore, looks, openFilesIn, snapshot } from './places.ts'

let folder: string
let file: string
let url: string
let backup: string

let empty: string
beforeAll(async () => {
  empty = join(mkdtempSync(join(tmpdir(), 'plant-store-')), 'empty.db')
  await createStore(`file:${empty}`)
  return () => rmSync(dirname(empty), { recursive: true })
})
beforeEach(() => {
  folder = temporaryFolder()
  file = join(folder, 'store.db')
  url = `file:${file}`
  backup = join(folder, 'backup.db')
})

/** Adds notes to the store, and creates it if needed. */
function load(from: number, count: number) {
  if (!existsSync(file)) {
    copyFileSync(empty, file)
  }
  const ids = `with recursive ids(id) as (select ${from} union all select id + 1 from ids limit ${count})`
  changeBySql(
    file,
    `${ids} insert into notes (id, text) select id, '${'x'.repeat(200)}' from ids`,
  )
}

/** Adds a note, and copies the store as a killed server leaves it. */
async function crash(copy: string) {
  await using storage = await openStorage({ url })
  await storage.notes.insert(note(5_000))
  for (const suffix of ['', '-wal']) {
    copyFileSync(file + suffix, copy + suffix)
  }
}

function filesIn() {
  return readdirSync(folder).sort()
}

async function countNotes(counted = url) {
  return (await inspectStore(counted)).counts.notes
}

const force = { force: true }
const pageBytes = 4096

/**
 * Overwrites pages in the middle, so that the file still looks like a database from its
 * first page.
 */
function damage(path: string) {
  const descriptor = openSync(path, 'r+')
  const content = Buffer.alloc(10 * pageBytes, 0x5a)
  writeSync(descriptor, content, 0, content.length, 40 * pageBytes)
  closeSync(descriptor)
}

/** Acts before SQLite copies pages into a file, and after. */
function aroundCopy(before: () => void, after?: (target: string) => void) {
  const copy = Database.prototype.backup
  vi.spyOn(Database.prototype, 'backup').mockImplementation(async function (
    this: Database.Database,
    target,
  ) {
    before()
    const copied = await copy.call(this, target)
    after?.(target)
    return copied
  })
}

test('a backup under changes is the store as it was when it began', async () => {
  load(0, 20_000)
  await using storage = await openStorage({ url })
  let changes = 0
  const parts: number[] = []

  const report = await backUpStore(url, backup, {
    onProgress({ pages, ofPages }) {
      parts.push(pages / ofPages)
      storage.notes.insert(note(1_000_000 + changes++))
    },
  })

  expect(report).toMatchObject({
    store: backup,
    bytes: statSync(backup).size,
    counts: { notes: 20_000 },
    schemaVersion: 1,
  })
  expect(changes).toBeGreaterThan(1)
  expect(parts, 'the progress grows').toEqual(parts.toSorted((a, b) => a - b))
  expect(parts.at(-1)).toBeLessThanOrEqual(1)
  expect(filesIn()).toEqual([
    'backup.db',
    'store.db',
    'store.db-shm',
    'store.db-wal',
    'store.db.last-backup',
  ])
  expect(await countNotes(`file:${backup}`)).toBe(20_000)
  expect(readFileSync(backup)[18], 'its header says that it has no WAL').toBe(1)
})

test('copies are on the disk before they are reported', async context => {
  load(0, 100)
  const tracer = await traceOrSkip(context, '/^(unlink|rename|link)')

  await backUpStore(url, backup)
  await restoreStore(url, backup, force)

  const calls = (await tracer.detach()).filter(line => line.includes(folder))
  const folderSynced = expect.stringMatching(` fsync\\(\\d+<${folder}>\\) += 0`)
  // The backup is whole once SQLite has removed its journal.
  const whole = calls.findLastIndex(line => /^\d+ +unlink.*\.part-journal/.test(line))
  const rest = calls
    .slice(whole + 1)
    .filter(line => !/^\d+ +unlink|last-backup/.test(line))
  // Its name comes with all of it: an empty file would be a store without plants.
  expect(rest.slice(0, 3)).toEqual([
    expect.stringMatching(/ fsync\(.*\.part>\) += 0/),
    expect.stringMatching(/ link.*\.part.* = 0/),
    folderSynced,
  ])
  // A journal that came back would undo the restore.
  const committed = calls.findLastIndex(line =>
    /^\d+ +unlink.*store\.db-journal.* = 0/.test(line),
  )
  expect(calls.slice(committed + 1)).toContainEqual(folderSynced)
})

test('a copy that is given up or fails leaves the files that were there', async () => {
  load(0, 20_000)
  writeFileSync(backup, 'any text')
  const giveUp = new AbortController()
  const onProgress = vi.fn(() => giveUp.abort())
  const given = { force: true, signal: giveUp.signal, onProgress }

  const backingUp = backUpStore(url, backup, given)

  await expect(backingUp).rejects.toThrow(/could not be backed up/)
  expect(onProgress).toHaveBeenCalledOnce()
  const nowhere = join(folder, 'no', 'backup.db')
  await expect(backUpStore(url, nowhere)).rejects.toThrow(
    `the store ${file} could not be backed up to ${nowhere}: no such file or folder`,
  )
  expect(readFileSync(backup, 'utf8')).toBe('any text')
  expect(filesIn()).toEqual(['backup.db', 'store.db'])

  await backUpStore(url, backup, force)
  const lastBackup = await readLastBackup(url)
  load(20_000, 1_000)
  const filesBefore = filesIn()
  const again = new AbortController()
  const restoring = restoreStore(url, backup, {
    force: true,
    signal: again.signal,
    onProgress: () => again.abort(),
  })
  await expect(restoring).rejects.toThrow(/could not be restored/)
  expect(await countNotes()).toBe(21_000)
  expect(filesIn()).toEqual(filesBefore)
  expect(await readLastBackup(url)).toEqual(lastBackup)
})

test('a file that comes to the target during the copy is not replaced', async () => {
  load(0, 100)
  const onProgress = () => writeFileSync(backup, 'what came')

  await expect(backUpStore(url, backup, { onProgress })).rejects.toThrow('already exists')

  expect(readFileSync(backup, 'utf8')).toBe('what came')
})

test('a damaged copy is no backup', async () => {
  load(0, 3_000)
  aroundCopy(() => {}, damage)

  await expect(backUpStore(url, backup)).rejects.toThrow(/is damaged/)

  expect(filesIn()).toEqual(['store.db'])
})

test('a store that is damaged or cut off is not backed up', async () => {
  load(0, 3_000)
  damage(file)

  const error = await inspectStore(url).catch(error => error)

  expect(error.message).toMatch(
    / cannot be opened: it is damaged: [^\n]+ page \d+[^\n]+ page \d+[^\n]+$/,
  )
  expect(isDamage(error)).toBe(true)
  expect(openFilesIn(file)).toEqual([])
  await expect(backUpStore(url, backup), 'damaged').rejects.toThrow(/is damaged/)

  truncateSync(file, 100 * pageBytes)
  const message = `the store ${file} cannot be opened: it is damaged`
  const refusal = expect.objectContaining({ message })
  await expect(inspectStore(url)).rejects.toThrow(refusal)
  await expect(openStorage({ url })).rejects.toThrow(refusal)
  await expect(backUpStore(url, backup), 'cut off').rejects.toThrow(/: it is damaged$/)
  expect(filesIn()).toEqual(['store.db'])
})

test('a changed or damaged store is what was backed up once it is restored', async () => {
  load(0, 1_000)
  await backUpStore(url, backup)
  load(1_000, 5_000)

  const ofChanged = await restoreStore(url, backup, force)
  damage(file)
  const ofDamaged = await restoreStore(url, backup, force)

  const restored = { store: file, counts: { notes: 1_000 } }
  expect(ofChanged).toMatchObject(restored)
  expect(ofDamaged).toMatchObject(restored)
  expect(await countNotes()).toBe(1_000)
  expect(filesIn()).toEqual(['backup.db', 'store.db'])
  await using storage = await openStorage({ url })
  expect(await storage.notes.insert(note(1_000))).toBe(true)
})

test('a store is restored where none is, without the WAL of one that was', async () => {
  load(0, 1_000)
  await backUpStore(url, backup)
  await crash(join(folder, 'stale'))
  rmSync(file)
  renameSync(join(folder, 'stale-wal'), `${file}-wal`)

  await expect(restoreStore(url, backup)).rejects.toThrow('store.db-wal already exists')
  await restoreStore(url, backup, force)
  const elsewhere = `file:${folder}/a/new/folder/store.db`
  await restoreStore(elsewhere, backup)

  expect([await countNotes(), await countNotes(elsewhere)]).toEqual([1_000, 1_000])
})

test('a store in use is not replaced', async () => {
  load(0, 100)
  await backUpStore(url, backup)
  load(100, 100)
  const refusal = {
    name: 'StoreInUseError',
    message: `the store ${file} is in use: stop the server first`,
    cause: { code: 'SQLITE_BUSY' },
  }
  {
    await using _ = await openStorage({ url })
    const restoring = restoreStore(url, backup, force)
    await expect(restoring, 'by a server').rejects.toMatchObject(refusal)
  }

  const other = new Database(file).exec('begin immediate')
  const restoring = restoreStore(url, backup, force)
  await expect(restoring, 'in the old journal mode').rejects.toMatchObject(refusal)
  // The advice to use --force would not help, so it is not given.
  await expect(restoreStore(url, backup)).rejects.toThrow(StoreInUseError)

  other.close()
  expect(await countNotes()).toBe(200)
  await expect(restoreStore(url, backup)).rejects.toThrow(
    'already exists: use --force to replace it and lose the changes since the backup',
  )
})

test('a store that is locked or opened just before the copy is not replaced', async () => {
  load(0, 20_000)
  await backUpStore(url, backup)
  load(20_000, 100)
  // A server that starts would create a WAL.
  const onProgress = () => writeFileSync(`${file}-wal`, '')
  const opened = restoreStore(url, backup, { force: true, onProgress })
  await expect(opened, 'opened').rejects.toThrow(StoreInUseError)
  rmSync(`${file}-wal`)
  expect(await countNotes()).toBe(20_100)

  let other: Database.Database | undefined
  aroundCopy(() => {
    other = new Database(file).exec('begin immediate')
  })
  const locked = restoreStore(url, backup, force)
  await expect(locked, 'locked').rejects.toThrow(StoreInUseError)
  other?.close()
  expect(await countNotes()).toBe(20_100)
})

test('a backup is restored into a store with pages of another size', async () => {
  load(0, 1_000)
  const setPages = (bytes: number) =>
    changeBySql(file, `pragma journal_mode = delete; pragma page_size = ${bytes}; vacuum`)
  setPages(1_024)
  await backUpStore(url, backup)
  load(1_000, 1_000)
  setPages(16_384)

  await restoreStore(url, backup, force)

  const counts = { notes: 1_000 }
  expect(await inspectStore(url)).toMatchObject({ counts, bytes: statSync(backup).size })
})

test('a backup that cannot be read is refused, and the store left as it was', async () => {
  load(0, 3_000)
  await backUpStore(url, backup)
  load(3_000, 1_000)
  const copy = join(folder, 'copy.db')
  const noDatabase = 'a text that is longer than a header'.repeat(20)
  const faults: [spoil: () => void, reason: RegExp][] = [
    [() => damage(copy), /: it is damaged: .*: try another backup$/],
    [() => truncateSync(copy, 100 * pageBytes), /: it is damaged: try another backup$/],
    [() => truncateSync(copy, 0), /: it is empty: try another backup$/],
    [() => writeFileSync(copy, noDatabase), /not a database: try another backup$/],
    [() => rmSync(copy), /no such file/],
  ]

  for (const [spoil, reason] of faults) {
    copyFileSync(backup, copy)
    spoil()
    await expect(restoreStore(url, copy, force), `${reason}`).rejects.toThrow(reason)
    const inNewFolder = restoreStore(`file:${folder}/new/store.db`, copy)
    await expect(inNewFolder, `${reason}`).rejects.toThrow(reason)
  }

  expect(readdirSync(folder)).not.toContain('new')
  expect(await countNotes()).toBe(4_000)
  expect(readdirSync(folder)).not.toContainEqual(expect.stringMatching(/\.part$/))
})

test('a damaged file is replaced by a backup, with what is beside it', async () => {
  load(0, 1_000)
  await backUpStore(url, backup)
  truncateSync(backup, pageBytes)
  writeFileSync(`${backup}-wal`, '')
  writeFileSync(`${backup}-journal`, '')

  await backUpStore(url, backup, force)

  expect(await countNotes(`file:${backup}`)).toBe(1_000)
  expect(filesIn()).toEqual(['backup.db', 'store.db', 'store.db.last-backup'])
})

test.each([
  ['is no database', () => writeFileSync(file, 'no database any more'.repeat(300))],
  ['is cut off', () => truncateSync(file, pageBytes)],
])('a store that %s is replaced with its WAL', async (_, spoil) => {
  load(0, 100)
  await backUpStore(url, backup)
  const crashed = join(folder, 'crashed.db')
  await crash(crashed)
  renameSync(crashed, file)
  spoil()
  renameSync(`${crashed}-wal`, `${file}-wal`)

  const report = await restoreStore(url, backup, force)

  expect(report).toMatchObject({ changed: undefined })
  expect(filesIn()).toEqual(['backup.db', 'store.db'])
  expect(await countNotes()).toBe(100)
})

test('a backup to a file that is not its own is refused before it is made', async () => {
  load(0, 100)
  const at = (name: string) => join(folder, name)
  symlinkSync(at('nowhere'), at('link'))
  mkdirSync(at('folder'))
  writeFileSync(at('file'), '')
  writeFileSync(at('left.db-journal'), '')
  const onProgress = vi.fn()
  const existing = 'already exists: use --force to replace it'

  for (const [target, isForced, reason] of [
    ['store.db-wal', true, ` belongs to ${file}`],
    ['link', true, ' is a link: name the file that it leads to'],
    ['folder', true, ' is a folder'],
    ['file', false, ` ${existing}`],
    ['left.db', false, `-journal ${existing}`],
  ] as const) {
    const path = at(target)
    const refused = backUpStore(url, path, { force: isForced, onProgress })
    await expect(refused, target).rejects.toThrow(
      `the store ${file} could not be backed up to ${path}: ${path}${reason}`,
    )
  }

  expect(onProgress).not.toHaveBeenCalled()
  // No store has this WAL.
  await backUpStore(url, at('named-wal'))
  expect(existsSync(at('named-wal'))).toBe(true)
})

test.each([
  ['a folder', (path: string) => mkdirSync(path), 'is a folder'],
  ['a device', (path: string) => symlinkSync('/dev/null', path), 'is not a file'],
])('a restore from or to %s says what it is', async (_, create, reason) => {
  load(0, 100)
  await backUpStore(url, backup)
  const other = join(folder, 'other.db')
  create(other)
  const path = realpathSync(other)

  const to = restoreStore(`file:${other}`, backup, force)
  const from = restoreStore(url, other, force)

  await expect(to).rejects.toThrow(
    `the store ${path} could not be restored from ${backup}: ${path} ${reason}`,
  )
  await expect(from).rejects.toThrow(`: ${path} ${reason}`)
})

test('a copy is for those of the file that it replaces, never for all', async () => {
  const modeOf = (path: string) => statSync(path).mode & 0o777
  load(0, 100)
  expect(modeOf(file), 'a new store').toBe(0o600)
  chmodSync(file, 0o644)
  await createStore(url)
  expect(modeOf(file), 'a store').toBe(0o640)

  await backUpStore(url, backup)
  expect(modeOf(backup), 'a new backup').toBe(0o600)
  const owner = process.getuid?.() === 0 ? 1 : statSync(backup).uid
  chownSync(backup, owner, statSync(backup).gid)
  chmodSync(backup, 0o666)
  await backUpStore(url, backup, force)
  expect(statSync(backup), 'a backup').toMatchObject({ uid: owner, mode: 0o100660 })

  chmodSync(file, 0o644)
  await restoreStore(url, backup, force)
  expect(modeOf(file), 'a restored store').toBe(0o640)
})

describe('the time of the last backup', () => {
  let time: string
  let link: string
  beforeEach(() => {
    load(0, 100)
    time = `${file}.last-backup`
    link = join(folder, 'link.db')
    symlinkSync(file, link)
  })

  async function backUp(named = url) {
    const report = await backUpStore(named, backup, force)
    expect(report.unrecorded).toBeUndefined()
    return readLastBackup(named)
  }

  test('is that at which it began, until a restore, even by a link', async () => {
    expect(await readLastBackup(url), 'before').toBeNull()
    const startMs = Date.now()

    const at = await backUp(`file:${link}`)

    expect(at?.getTime()).toBeGreaterThanOrEqual(startMs)
    expect(at?.getTime()).toBeLessThanOrEqual(Date.now())
    expect(statSync(time).mode & 0o777).toBe(0o600)
    expect(await readLastBackup(url), 'not by the link').toEqual(at)

    await restoreStore(`file:${link}`, backup, force)
    expect(readlinkSync(link)).toBe(file)
    expect(await readLastBackup(url), 'after the restore').toBeNull()
    expect(await readLastBackup(`file:${backup}`), 'of the backup').toBeNull()
  })

  test('ends with a new or restored store in the place of a removed one', async () => {
    for (const act of [() => restoreStore(url, backup), () => createStore(url)]) {
      await backUp()
      rmSync(file)

      await act()

      expect(await readLastBackup(url), `${act}`).toBeNull()
    }
  })

  test('is unknown if its file holds something else, or on a server', async () => {
    writeFileSync(time, 'no time')

    expect(await readLastBackup(url)).toBeNull()
    expect(await readLastBackup('postgres://127.0.0.1/plants')).toBeUndefined()
  })

  test("replaces another user's link and leaves its target", async () => {
    const precious = join(folder, 'precious')
    writeFileSync(precious, 'kept')
    symlinkSync(precious, time)

    await backUp()

    expect(readFileSync(precious, 'utf8')).toBe('kept')
  })

  test('is unrecorded, not none, if its file is a folder', async () => {
    mkdirSync(time)

    const report = await backUpStore(url, backup, force)

    expect(report).toMatchObject({ unrecorded: 'it is a folder' })
    await expect(readLastBackup(url)).rejects.toThrow(
      'the time of the last backup cannot be read: it is a folder',
    )
    await expect(restoreStore(url, backup, force)).rejects.toThrow(
      `the store ${file} was restored, but the time of its last backup could not be removed: `,
    )
  })
})

test('leftovers of a killed backup in a folder are removed after a day', async () => {
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

  await backUpStore(url, backup)

  expect(filesIn()).toEqual([
    '.plant-store-0123456789ac.part',
    '.plant-store-of-others.part',
    'backup.db',
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

test('the WAL of another store is refused by all that opens a store', async () => {
  load(0, 100)
  await backUpStore(url, backup)
  const crashed = join(folder, 'crashed.db')
  await crash(crashed)
  copyFileSync(`${crashed}-wal`, `${backup}-wal`)
  const link = join(folder, 'link')
  symlinkSync(backup, link)
  const before = snapshot(folder)
  const refusal = `: ${backup}-wal is the WAL of another store: move it away`
  const acts: [name: string, act: (store: string) => Promise<unknown>][] = [
    ...looks,
    ['openStorage', store => openStorage({ url: store })],
    ['a restore in its place', store => restoreStore(store, file, force)],
  ]

  for (const [name, act] of acts) {
    await expect(act(`file:${backup}`), name).rejects.toThrow(refusal)
    await expect(act(`file:${link}`), `${name}, by a link`).rejects.toThrow(refusal)
  }

  expect(snapshot(folder)).toEqual(before)
})

test.each([
  ['is gone', () => {}],
  ['is an empty file', (store: string) => writeFileSync(store, '')],
])('no store is made beside the WAL of one that %s', async (_, leave) => {
  load(0, 100)
  const crashed = join(folder, 'crashed.db')
  await crash(crashed)
  rmSync(crashed)
  leave(crashed)
  const before = snapshot(folder)
  const refusal = `: ${crashed}-wal is the WAL of another store: move it away`

  await expect(planOpening(`file:${crashed}`)).rejects.toThrow(refusal)
  await expect(openStorage({ url: `file:${crashed}` })).rejects.toThrow(refusal)

  expect(snapshot(folder)).toEqual(before)
})

test('the size of a store includes its WAL', async () => {
  load(0, 1)
  await using storage = await openStorage({ url })
  await storage.notes.insert(note(1, 'x'.repeat(100_000)))
  const bytesOf = (suffix: string) => statSync(file + suffix).size

  const { bytes } = await inspectStore(url)

  expect(bytes).toBe(bytesOf('') + bytesOf('-wal') + bytesOf('-shm'))
})

/** Returns the files of a folder, without the times of last backups. */
function storesIn(folder: string): Record<string, string> {
  const files = Object.entries(snapshot(folder))
  return Object.fromEntries(files.filter(([name]) => !name.endsWith('.last-backup')))
}

test('readers change no byte of a store, in use, copied or killed', async () => {
  load(0, 100)
  await backUpStore(url, backup)
  const crashed = join(folder, 'crashed.db')
  await crash(crashed)
  const withoutWal = join(folder, 'without-wal.db')
  copyFileSync(crashed, withoutWal)
  const used = join(folder, 'used.db')
  await using storage = await openStorage({ url: `file:${used}` })
  await storage.notes.insert(note(9_000))
  const before = storesIn(folder)
  const expected = { store: 101, backup: 100, crashed: 101, withoutWal: 100, used: 1 }

  for (const [name, look] of looks) {
    const notesIn = {
      store: await look(url),
      backup: await look(`file:${backup}`),
      crashed: await look(`file:${crashed}`),
      withoutWal: await look(`file:${withoutWal}`),
      used: await look(`file:${used}`),
    }
    expect(notesIn, name).toEqual(expected)
    // SQLite needs the shm to find pages in the WAL, and counts readers there.
    const shm = expect.anything()
    const changed = { 'crashed.db-shm': shm, 'used.db-shm': shm }
    expect(storesIn(folder), name).toEqual({ ...before, ...changed })
    rmSync(`${crashed}-shm`)
  }
})

test('the locks of an open store outlast all that reads it', async () => {
  await using storage = await openStorage({ url })
  await storage.notes.insert(note(1))

  for (const [, look] of looks) {
    await look(url)
  }

  // Closing any descriptor of a file drops all locks that this process has on it.
  const write = `new (require('better-sqlite3'))('${file}', { timeout: 0 }).exec('pragma locking_mode = exclusive; begin exclusive')`
  const options = { encoding: 'utf8', cwd: import.meta.dirname } as const
  const { stderr } = spawnSync(process.execPath, ['-e', write], options)
  expect(stderr).toContain('database is locked')
})

test('an interrupted change is refused by readers, and taken back by a start', async () => {
  const copy = interruptChange()
  const before = snapshot(folder)

  for (const [name, look] of looks) {
    await expect(look(`file:${copy}`), name).rejects.toThrow(
      /: a change was interrupted: start the server, which takes it back/,
    )
  }
  expect(snapshot(folder)).toEqual(before)

  await createStore(`file:${copy}`)
  expect(await countNotes(`file:${copy}`)).toBe(1_000)
})

/** Returns a copy of a store as it is in the middle of a change without a WAL. */
function interruptChange(): string {
  load(0, 1_000)
  const copy = join(folder, 'copy.db')
  const interrupted = new Database(file)
  interrupted.exec('pragma cache_size = 1; begin; update notes set text = text || 1')
  for (const suffix of ['', '-journal']) {
    copyFileSync(file + suffix, copy + suffix)
  }
  interrupted.close()
  return copy
}

test('a replaced or removed text is in no later backup or closed store', async () => {
  const texts = Array.from({ length: 100 }, () => crypto.randomUUID())
  const textsIn = (path: string) => {
    const bytes = readFileSync(path)
    return texts.filter(text => bytes.includes(text)).length
  }
  {
    await using storage = await openStorage({ url })
    for (const [n, text] of texts.entries()) {
      await storage.notes.save(note(n >> 1, text))
    }
    await backUpStore(url, backup)
    expect(textsIn(backup), 'those that replaced others').toBe(50)
    for (let n = 0n; n < 50n; n++) {
      await storage.notes.remove(n)
    }
    await backUpStore(url, backup, force)
    expect(textsIn(backup), 'none in a later backup').toBe(0)
  }
  expect(textsIn(file), 'none in the store').toBe(0)
})

test('a store on a server is not backed up or restored', async () => {
  const message =
    'postgres://flora@db/plants is not a file: use pg_dump to back it up, and pg_restore'
  const refusal = expect.objectContaining({ message })
  const store = 'postgres://flora:secret@db/plants'

  await expect(backUpStore(store, backup)).rejects.toThrow(refusal)
  await expect(restoreStore(store, backup)).rejects.toThrow(refusal)
})
