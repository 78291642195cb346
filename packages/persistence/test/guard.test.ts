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
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { storeFiles } from '@plant-store/engine'
import { mayNotMount } from '@plant-store/harness/vitest'
import {
  backUpStore,
  inspectStore,
  openReader,
  openStorage,
  restoreStore,
} from '@plant-store/persistence'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import {
  flood,
  idsAt,
  idsFrom,
  type StoreProcess,
  startStoreProcess,
} from './processes.ts'
import { looks, plant, snapshot, temporaryFolder } from './store-folder.ts'

/** How a file comes to harm. */
const ways = {
  removed: (path: string) => rmSync(path),
  replaced(path: string) {
    copyFileSync(path, `${path}.copy`)
    renameSync(`${path}.copy`, path)
  },
  cut: (path: string) => truncateSync(path, statSync(path).size / 2),
  'overwritten by its former state': (path: string) =>
    copyFileSync(`${path}.before`, path),
  'overwritten by a backup'(path: string) {
    const backup = new Database(`${path}.backup`)
    // Counts more changes than the store.
    for (let n = 0; n < 20; n++) {
      backup.pragma(`user_version = ${n}`)
    }
    backup.close()
    copyFileSync(`${path}.backup`, path)
  },
}
type Way = keyof typeof ways

/**
 * Waits because a change may be answered until 10 ms after the last check of the files.
 */
const passCheck = () => sleep(20)
const unavailable = { code: 'store-unavailable' }

interface Displacement {
  readonly suffix: string
  readonly way: Way
  /** A word of the reason that operators read. */
  readonly word: string
  /** Whether the next start finds every change without help. */
  readonly isWhole?: boolean
}

// A shm that was cut has no row, because the system kills whoever reads it (SIGBUS).
test.each<Displacement>([
  { suffix: '', way: 'removed', word: 'removed, moved or replaced' },
  { suffix: '', way: 'replaced', word: 'removed, moved or replaced' },
  { suffix: '', way: 'cut', word: 'cut' },
  { suffix: '', way: 'overwritten by its former state', word: 'overwritten' },
  { suffix: '', way: 'overwritten by a backup', word: 'overwritten' },
  {
    suffix: '-wal',
    way: 'removed',
    word: 'removed, moved or replaced',
    isWhole: true,
  },
  {
    suffix: '-wal',
    way: 'replaced',
    word: 'removed, moved or replaced',
    isWhole: true,
  },
  { suffix: '-wal', way: 'cut', word: 'cut' },
  {
    suffix: '-shm',
    way: 'removed',
    word: 'removed, moved or replaced',
    isWhole: true,
  },
  {
    suffix: '-shm',
    way: 'replaced',
    word: 'removed, moved or replaced',
    isWhole: true,
  },
])(
  'a store whose plants.db$suffix is $way refuses changes and says why',
  async ({ suffix, way, word, isWhole = false }) => {
    const file = join(temporaryFolder(), 'plants.db')
    const url = `file:${file}`
    await createStoreWithCopies(file)
    {
      const failure = Promise.withResolvers<string | undefined>()
      await using storage = await openStorage({ url, onFailureChange: failure.resolve })
      const others = idsFrom(2, 49).map(id => plant(id))
      await storage.plants.insertAll(others)

      ways[way](file + suffix)
      await passCheck()
      const first = storage.plants.insert(plant(100))
      // This one is sent before the store has heard of its outage.
      const second = storage.plants.insert(plant(101))

      await expect(first).rejects.toMatchObject(unavailable)
      await expect(second).rejects.toMatchObject(unavailable)
      const reason = expect.stringContaining(`plants.db${suffix} was ${word}`)
      expect(await failure.promise).toEqual(reason)
      const outage = { ...unavailable, cause: { message: reason } }
      await expect(storage.check()).rejects.toMatchObject(outage)
    }
    if (!isWhole) {
      return
    }
    const ids = await idsAt(url)
    expect(ids, 'the next start').toEqual(idsFrom(1, 50))
  },
)

/** Creates a store of one plant, a copy of it as it was before, and a backup. */
async function createStoreWithCopies(file: string) {
  const url = `file:${file}`
  {
    await using storage = await openStorage({ url })
    copyFileSync(file, `${file}.before`)
    await storage.plants.insert(plant(1))
  }
  await backUpStore(url, `${file}.backup`)
}

/** Starts a store of which two thirds were removed, so that VACUUM makes it smaller. */
async function startWithFreePages() {
  const { file, url, store } = await startStore()
  await insertAll(store, idsFrom(1, 3_000))
  const other = new Database(file)
  onTestFinished(() => void other.close())
  other.exec('delete from plants where id > 1000')
  return { file, url, store, other }
}

test.each(['passive', 'truncate'])(
  'a served store that VACUUM makes smaller goes on (%s checkpoint)',
  async mode => {
    const { file, url, store, other } = await startWithFreePages()
    other.pragma('wal_checkpoint(passive)')
    const bytesBefore = statSync(file).size
    await passCheck()
    expect(await store.insert([5_000n])).toEqual(['inserted'])

    other.exec('vacuum')
    other.pragma(`wal_checkpoint(${mode})`)
    expect(statSync(file).size, 'the file is smaller').toBeLessThan(bytesBefore)
    await passCheck()

    expect(await store.insert([5_001n, 5_002n])).toEqual(['inserted', 'inserted'])
    expect(await store.check()).toEqual(['ready'])
    await store.kill()
    expect(await idsAt(url)).toEqual([...idsFrom(1, 1_000), 5_000n, 5_001n, 5_002n])
  },
)

test('a smaller store in the place of a served one is refused', async () => {
  const { file, store, other } = await startWithFreePages()
  const smaller = join(temporaryFolder(), 'plants.db')
  await (await openStorage({ url: `file:${smaller}` }))[Symbol.asyncDispose]()
  const bytes = readFileSync(smaller)
  // Like a copy of a store in use that has seen more changes.
  bytes[18] = 2
  bytes[19] = 2
  bytes.writeUInt32BE(1_000_000, 24)
  other.pragma('wal_checkpoint(passive)')
  await passCheck()
  expect(await store.insert([5_000n])).toEqual(['inserted'])

  writeFileSync(file, bytes)
  await passCheck()

  expect(await store.insert([9_000n])).toEqual(['store-unavailable'])
})

test.each<{ suffix: string; way: Way }>([
  { suffix: '-wal', way: 'removed' },
  { suffix: '-shm', way: 'replaced' },
])(
  'under load no answered change is lost if plants.db$suffix is $way',
  async ({ suffix, way }) => {
    const { file, url, store } = await startStore()
    const { inserted, refused } = flood(store)
    await expect.poll(() => inserted.length).toBeGreaterThan(500)

    ways[way](file + suffix)
    await refused

    expect(await store.check()).toEqual(['store-unavailable'])
    await store.kill()
    const kept = new Set(await idsAt(url))
    const lost = inserted.filter(id => !kept.has(id))
    expect(lost).toEqual([])
  },
)

async function startStore() {
  const file = join(temporaryFolder(), 'plants.db')
  const url = `file:${file}`
  return { file, url, store: await startStoreProcess(url) }
}

async function insertAll(store: StoreProcess, ids: readonly bigint[]) {
  expect(await store.insert(ids)).toEqual(ids.map(() => 'inserted'))
}

test('once the shm is gone no change of another process is overwritten', async () => {
  const { file, url, store } = await startStore()
  await insertAll(store, idsFrom(1, 50))

  rmSync(`${file}-shm`)
  const other = await startStoreProcess(url)
  await insertAll(other, idsFrom(200, 50))
  await other.close()

  expect(await store.insert([100n])).toEqual(['store-unavailable'])
  await store.close()
  expect(await idsAt(url)).toEqual([...idsFrom(1, 50), ...idsFrom(200, 50)])
})

test.each([
  { way: 'cut', displace: (wal: string) => truncateSync(wal) },
  { way: 'removed', displace: (wal: string) => rmSync(wal) },
])(
  'a WAL that is $way under a running store stops other openings',
  async ({ displace }) => {
    const { file, url, store } = await startStore()
    await insertAll(store, idsFrom(1, 50))

    displace(`${file}-wal`)

    await expect(openStorage({ url })).rejects.toThrow(/cannot be opened: /)
    await store.kill()
  },
)

const links: Record<string, (link: string, file: string) => void> = {
  'a relative link to a link'(link, file) {
    mkdirSync(dirname(link))
    symlinkSync(file, `${link}.second`)
    symlinkSync('link.db.second', link)
  },
  'a link in a folder that is a link'(link, file) {
    mkdirSync(join(dirname(file), 'links'), { recursive: true })
    symlinkSync(join(dirname(file), 'links'), dirname(link))
    symlinkSync('../plants.db', link)
  },
}
test.each(Object.entries(links))(
  'a store behind %s is guarded where it is',
  async (_, make) => {
    const folder = temporaryFolder()
    const file = join(folder, 'real', 'plants.db')
    const link = join(folder, 'named', 'link.db')
    make(link, file)
    const url = `file:${link}`
    const files = [file, `${file}-wal`]
    expect(storeFiles(url).slice(0, 2)).toEqual(files)
    {
      await using storage = await openStorage({ url })
      expect(storeFiles(url).slice(0, 2)).toEqual(files)
      await storage.plants.insert(plant(1))
      rmSync(`${file}-wal`)
      await passCheck()
      await expect(storage.plants.insert(plant(2))).rejects.toMatchObject(unavailable)
    }
    expect(await idsAt(`file:${file}`)).toEqual([1n])
  },
)

test('a link to itself is named as it is, and not opened', async () => {
  const link = join(temporaryFolder(), 'link.db')
  symlinkSync(link, link)
  const url = `file:${link}`
  const refusal = /cannot be opened: ELOOP/

  expect(storeFiles(url)[0]).toBe(link)
  await expect(openStorage({ url })).rejects.toThrow(refusal)
  await expect(inspectStore(url)).rejects.toThrow(refusal)
  await expect(openReader(url)).rejects.toThrow(refusal)
})

test('a path through a link and back out of it is that of the system', () => {
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'releases', '7'), { recursive: true })
  symlinkSync(join('releases', '7'), join(folder, 'current'))
  expect(storeFiles(`file:${folder}/current/../plants.db`)[0]).toBe(
    join(folder, 'releases', 'plants.db'),
  )
})

test.each(['plants.db', 'second.db'])(
  'a store with a second hard link is refused as %s, and left as it was',
  async name => {
    const folder = temporaryFolder()
    const file = join(folder, 'plants.db')
    await (await openStorage({ url: `file:${file}` }))[Symbol.asyncDispose]()
    const backup = join(folder, 'backup')
    await backUpStore(`file:${file}`, backup)
    linkSync(file, join(folder, 'second.db'))
    const before = snapshot(folder)
    const refusal =
      /: it has another name, a hard link: remove the name that the server does not use, as SQLite /
    const url = `file:${join(folder, name)}`

    await expect(openStorage({ url })).rejects.toThrow(refusal)
    expect(snapshot(folder), 'the files after opening').toEqual(before)
    await expect(restoreStore(url, backup, { force: true })).rejects.toThrow(refusal)
    expect(snapshot(folder), 'the files after restoring').toEqual(before)
  },
)

test('a backup with two names is read', async () => {
  const folder = temporaryFolder()
  const url = `file:${join(folder, 'plants.db')}`
  await (await openStorage({ url }))[Symbol.asyncDispose]()
  const backup = join(folder, 'backup')
  await backUpStore(url, backup)
  // Some programs keep equal backups in this way.
  linkSync(backup, `${backup}.2`)

  const report = await inspectStore(`file:${backup}.2`)

  expect(report).toMatchObject({ counts: { plants: 0 } })
})

test.each(looks)(
  '$name refuses another name of a store with changes in its WAL',
  async ({ look }) => {
    const folder = temporaryFolder()
    const file = join(folder, 'plants.db')
    const second = join(folder, 'second.db')
    await using storage = await openStorage({ url: `file:${file}` })
    await storage.plants.insert(plant(1))
    linkSync(file, second)

    await expect(look(`file:${second}`)).rejects.toThrow(
      ': it has another name, a hard link: ',
    )

    const files = readdirSync(folder).filter(name => name.startsWith('second'))
    expect(files).toEqual(['second.db'])
  },
)

test('a store that is mounted alone is not opened', async context => {
  const folder = temporaryFolder()
  const file = join(folder, 'plants.db')
  const mounted = join(folder, 'a name')
  await (await openStorage({ url: `file:${file}` }))[Symbol.asyncDispose]()
  if (!mountFile(file, mounted)) {
    return context.skip(mayNotMount)
  }
  const refusal = /: it is mounted alone: mount its folder, /

  await expect(openStorage({ url: `file:${mounted}` })).rejects.toThrow(refusal)
  // Without a WAL, it is whole like a backup.
  const report = await inspectStore(`file:${mounted}`)
  expect(report).toMatchObject({ counts: { plants: 0 } })

  await using storage = await openStorage({ url: `file:${file}` })
  await storage.plants.insert(plant(1))
  for (const { name, look } of looks) {
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
