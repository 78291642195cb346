import { spawnSync } from 'node:child_process'
import {
  copyFileSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { storeFiles } from '@plant-store/engine'
import { mayNotMount, temporaryFolder } from '@plant-store/harness/vitest'
import Database from 'better-sqlite3'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openWriterConnection } from '../src/sqlite/connection.ts'
import { FileGuard } from '../src/sqlite/guard.ts'
import { setStoreId } from '../src/sqlite/store-id.ts'
import {
  backUpStore,
  inspectStore,
  note,
  notesFrom,
  openReader,
  openStorage,
  planOpening,
  restoreStore,
} from './notes.ts'
import { changeBySql, createStore, itemsOf, looks, newFile, snapshot } from './places.ts'

const changesOf = (file: string) => readFileSync(file).readUInt32BE(24)

/** Creates a store of texts, of which some are in the WAL. */
function createTexts(id: number) {
  const file = newFile()
  const connection = openWriterConnection(file, 5_000)
  setStoreId(connection, id)
  connection.exec('create table texts (text text)')
  insertTexts(connection, 300)
  return { file, connection }
}

function insertTexts(connection: Database.Database, count: number) {
  const insert = connection.prepare('insert into texts values (?)')
  const insertAll = connection.transaction(() => {
    for (let n = 0; n < count; n++) {
      insert.run(`${n} `.repeat(100))
    }
  })
  insertAll()
}

/** Serves a store, which another program has open, too. */
function serve() {
  const { file, connection: server } = createTexts(1)
  copyWal(server)
  const guard = new FileGuard(server)
  const other = new Database(file)
  onTestFinished(() => {
    other.close()
    guard.closeStore()
  })
  return { file, server, guard, other }
}

function copyWal(connection: Database.Database) {
  connection.pragma('wal_checkpoint(passive)')
}

describe('a guard', () => {
  test('that finds a fault at its start leaves the WAL as it is', () => {
    const { file, connection } = createTexts(1)
    const before = [readFileSync(file), readFileSync(`${file}-wal`)]
    rmSync(`${file}-shm`)

    expect(() => new FileGuard(connection)).toThrow('notes.db-shm was removed')

    expect(connection.open).toBe(false)
    const after = [readFileSync(file), readFileSync(`${file}-wal`)]
    expect(Buffer.concat(after).equals(Buffer.concat(before))).toBe(true)
    const reader = new Database(file, { readonly: true })
    expect(reader.prepare('select count(*) from texts').pluck().get()).toBe(300)
    reader.close()
  })

  test('finds no fault in a store that grows again after a VACUUM', () => {
    const { file, server, guard, other } = serve()
    const bytesBefore = statSync(file).size
    other.exec('delete from texts where rowid > 100; vacuum')
    copyWal(other)
    expect(statSync(file).size, 'the file is smaller').toBeLessThan(bytesBefore)

    insertTexts(server, 1_000)

    expect(guard.findFault()).toBeUndefined()
    copyWal(other)
    expect(guard.findFault()).toBeUndefined()
  })

  test('finds no fault in a store that a program makes smaller twice', () => {
    const { server, guard, other } = serve()
    for (const last of [200, 50]) {
      other.exec(`delete from texts where rowid > ${last}; vacuum`)
      copyWal(other)
      expect(guard.findFault(), `after row ${last}`).toBeUndefined()
    }

    insertTexts(server, 1_000)
    copyWal(other)

    expect(guard.findFault()).toBeUndefined()
  })

  test('finds no fault in a store that SQLite itself has replaced', async () => {
    const { file, server, guard, other } = serve()
    const another = createTexts(2)
    insertTexts(another.connection, 1_000)

    await another.connection.backup(file)
    copyWal(other)

    expect(guard.findFault()).toBeUndefined()
    insertTexts(server, 10)
    copyWal(server)
    expect(guard.findFault()).toBeUndefined()
    another.connection.close()
  })

  test('finds an earlier copy that counts as many changes', () => {
    const { file, server, guard } = serve()
    const copy = `${file}.copy`
    copyFileSync(file, copy)
    insertTexts(server, 300)
    copyWal(server)
    expect(guard.findFault()).toBeUndefined()
    expect(changesOf(copy), 'one process counts only once').toBe(changesOf(file))

    copyFileSync(copy, file)

    expect(guard.findFault()?.reason).toContain('notes.db was overwritten')
  })

  test('finds a smaller copy of another store', () => {
    const { file, guard } = serve()
    const another = createTexts(2)
    another.connection.exec('delete from texts; vacuum')
    copyWal(another.connection)
    const bytes = readFileSync(another.file)
    // It has seen more changes.
    bytes.writeUInt32BE(1_000_000, 24)

    writeFileSync(file, bytes)

    expect(guard.findFault()?.reason).toContain('notes.db was overwritten')
    another.connection.close()
  })
})

/** How a file comes to harm. */
const ways: Readonly<Record<string, (path: string) => void>> = {
  removed: path => rmSync(path),
  replaced(path) {
    copyFileSync(path, `${path}.copy`)
    renameSync(`${path}.copy`, path)
  },
  cut: path => truncateSync(path, statSync(path).size / 2),
  'overwritten by its former state': path => copyFileSync(`${path}.before`, path),
  'overwritten by a backup'(path) {
    // Counts more changes than the store.
    for (let n = 0; n < 20; n++) {
      changeBySql(`${path}.backup`, `pragma user_version = ${n}`)
    }
    copyFileSync(`${path}.backup`, path)
  },
}

/**
 * Waits because a change may be answered until 10 ms after the last check of the files.
 */
const passCheck = () => sleep(20)
const unavailable = { code: 'store-unavailable' }

/** Returns the ids of the notes in a store, as the next process finds them. */
async function idsAt(url: string): Promise<bigint[]> {
  await using reader = await openReader(url)
  const notes = await itemsOf(reader.all('notes'))
  return notes.map(({ id }) => id)
}

// A shm that was cut has no row, because the system kills whoever reads it (SIGBUS).
test.each([
  ['', 'removed'],
  ['', 'replaced'],
  ['', 'cut'],
  ['', 'overwritten by its former state'],
  ['', 'overwritten by a backup'],
  ['-wal', 'removed'],
  ['-wal', 'replaced'],
  ['-wal', 'cut'],
  ['-shm', 'removed'],
  ['-shm', 'replaced'],
])('a store whose notes.db%s is %s refuses changes and says why', async (suffix, way) => {
  const file = newFile()
  const url = `file:${file}`
  if (way.startsWith('overwritten')) {
    await createStoreWithCopies(file)
  }
  {
    const failure = Promise.withResolvers<string | undefined>()
    await using storage = await openStorage({ url, onFailureChange: failure.resolve })
    await storage.notes.insertAll(notesFrom(2, 49))

    ways[way]?.(file + suffix)
    await passCheck()
    const first = storage.notes.insert(note(100))
    // This one is sent before the store has heard of its outage.
    const second = storage.notes.insert(note(101))

    await expect(first).rejects.toMatchObject(unavailable)
    await expect(second).rejects.toMatchObject(unavailable)
    const [verb] = way.split(' ')
    const word = verb?.startsWith('re') ? 'removed, moved or replaced' : verb
    const reason = expect.stringContaining(`notes.db${suffix} was ${word}`)
    expect(await failure.promise).toEqual(reason)
    const outage = { ...unavailable, cause: { message: reason } }
    await expect(storage.check()).rejects.toMatchObject(outage)
  }
  // The next process finds every change without help.
  const isWhole = suffix !== '' && way !== 'cut'
  if (!isWhole) {
    return
  }
  const ids = notesFrom(2, 49).map(({ id }) => id)
  expect(await idsAt(url), 'the next process').toEqual(ids)
})

/** Creates a store of one note, a copy of it as it was before, and a backup. */
async function createStoreWithCopies(file: string) {
  const url = `file:${file}`
  {
    await using storage = await openStorage({ url })
    copyFileSync(file, `${file}.before`)
    await storage.notes.insert(note(1))
  }
  await backUpStore(url, `${file}.backup`)
}

test('a store behind links is guarded where it is', async () => {
  const folder = temporaryFolder()
  const file = join(folder, 'real', 'notes.db')
  const linkToLink = join(folder, 'first.db')
  symlinkSync(file, join(folder, 'second.db'))
  symlinkSync('second.db', linkToLink)
  mkdirSync(join(folder, 'real', 'links'), { recursive: true })
  symlinkSync(join(folder, 'real', 'links'), join(folder, 'named'))
  const linkInLink = join(folder, 'named', 'link.db')
  symlinkSync('../notes.db', linkInLink)
  const names = [linkToLink, linkInLink]
  const wals = () => names.map(name => storeFiles(`file:${name}`)[1])
  const walsExpected = Array(2).fill(`${file}-wal`)

  expect(wals(), 'before there is a store').toEqual(walsExpected)
  {
    await using storage = await openStorage({ url: `file:${linkToLink}` })
    expect(wals(), 'of a store').toEqual(walsExpected)
    await storage.notes.insert(note(1))
    rmSync(`${file}-wal`)
    await passCheck()
    await expect(storage.notes.insert(note(2))).rejects.toMatchObject(unavailable)
  }
  expect(await idsAt(`file:${linkInLink}`)).toEqual([1n])
})

test('a link to itself is named as it is, and not opened', async () => {
  const link = join(temporaryFolder(), 'link.db')
  symlinkSync(link, link)
  const url = `file:${link}`

  expect(storeFiles(url)[0]).toBe(link)
  await expect(openStorage({ url })).rejects.toThrow(
    /cannot be opened: its links lead in a circle$/,
  )
})

test('a path through a link and back out of it is that of the system', () => {
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'releases', '7'), { recursive: true })
  symlinkSync(join('releases', '7'), join(folder, 'current'))

  const [file] = storeFiles(`file:${folder}/current/../notes.db`)

  expect(file).toBe(join(folder, 'releases', 'notes.db'))
})

describe('a store with a second hard link', () => {
  const refusal =
    /: it has another name, a hard link: remove the name that the server does not use, as SQLite /

  test('is not opened or replaced, and only read without a WAL', async () => {
    const folder = temporaryFolder()
    const backup = join(folder, 'backup')
    const url = `file:${join(folder, 'notes.db')}`
    await createStore(url)
    await backUpStore(url, backup)
    linkSync(join(folder, 'notes.db'), join(folder, 'second.db'))
    const before = snapshot(folder)

    await expect(openStorage({ url })).rejects.toThrow(refusal)
    await expect(planOpening(url)).rejects.toThrow(refusal)
    await expect(restoreStore(url, backup, { force: true })).rejects.toThrow(refusal)
    // Some programs keep equal backups like this.
    const report = await inspectStore(url)

    expect(report).toMatchObject({ counts: { notes: 0 } })
    expect(snapshot(folder)).toEqual(before)
  })

  test('is not read if it has changes in its WAL', async () => {
    const folder = temporaryFolder()
    const file = join(folder, 'notes.db')
    const second = join(folder, 'second.db')
    await using storage = await openStorage({ url: `file:${file}` })
    await storage.notes.insert(note(1))
    linkSync(file, second)

    for (const [name, look] of looks) {
      await expect(look(`file:${second}`), name).rejects.toThrow(refusal)
    }

    const files = readdirSync(folder).filter(name => name.startsWith('second'))
    expect(files).toEqual(['second.db'])
  })
})

test('a store that is mounted alone is not opened', async context => {
  const folder = temporaryFolder()
  const file = join(folder, 'notes.db')
  const mounted = join(folder, 'a name')
  await createStore(`file:${file}`)
  if (!mountFile(file, mounted)) {
    return context.skip(mayNotMount)
  }
  const refusal = /: it is mounted alone: mount its folder, /

  await expect(openStorage({ url: `file:${mounted}` })).rejects.toThrow(refusal)
  // Without a WAL, it is whole like a backup.
  const report = await inspectStore(`file:${mounted}`)
  expect(report).toMatchObject({ counts: { notes: 0 } })

  await using storage = await openStorage({ url: `file:${file}` })
  await storage.notes.insert(note(1))
  for (const [name, look] of looks) {
    await expect(look(`file:${mounted}`), name).rejects.toThrow(refusal)
  }
})

/** Mounts a file alone until the test ends. Returns whether the system allows that. */
function mountFile(file: string, mounted: string): boolean {
  writeFileSync(mounted, '')
  const isMounted = spawnSync('mount', ['--bind', file, mounted]).status === 0
  if (isMounted) {
    // A process that has read the file by this path keeps it open.
    onTestFinished(() => void spawnSync('umount', ['--lazy', mounted]))
  }
  return isMounted
}
