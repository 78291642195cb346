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
import { flood, idsAt, idsFrom, startStoreProcess } from './processes.ts'
import { looks, plant, snapshot, temporaryFolder } from './store-folder.ts'

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

/** A change may still be answered for 10 ms after a look at the files. */
const pastLook = () => sleep(20)
const unavailable = { code: 'store-unavailable' }

test.each<[suffix: string, way: Way, isWhole?: 'whole']>([
  ['', 'removed'],
  ['', 'replaced'],
  ['', 'cut'],
  ['', 'overwritten by its former state'],
  ['', 'overwritten by a backup'],
  ['-wal', 'removed', 'whole'],
  ['-wal', 'replaced', 'whole'],
  ['-wal', 'cut'],
  // Whoever looks into a shm that was cut is killed by the system (SIGBUS).
  ['-shm', 'removed', 'whole'],
  ['-shm', 'replaced', 'whole'],
])(
  'if plants.db%s is %s, a store refuses the next change and says why',
  async (suffix, way, isWhole) => {
    const file = join(temporaryFolder(), 'plants.db')
    const url = `file:${file}`
    {
      await using storage = await openStorage({ url })
      copyFileSync(file, `${file}.before`)
      await storage.plants.insert(plant(1))
    }
    await backUpStore(url, `${file}.backup`)
    {
      const failing = Promise.withResolvers<string | undefined>()
      await using storage = await openStorage({ url, onFailureChange: failing.resolve })
      await Promise.all(idsFrom(2, 49).map(id => storage.plants.insert(plant(id))))
      ways[way](file + suffix)
      await pastLook()
      // The second one is under way before the store knows of its outage.
      const refused = [100, 101].map(id => storage.plants.insert(plant(id)))
      for (const each of refused) {
        await expect(each).rejects.toMatchObject(unavailable)
      }
      const words = ['removed', 'replaced'].includes(way)
        ? 'removed, moved or replaced'
        : way.split(' ')[0]
      const reason = expect.stringContaining(`plants.db${suffix} was ${words}`)
      expect(await failing.promise).toEqual(reason)
      await expect(storage.check()).rejects.toMatchObject({
        ...unavailable,
        cause: { message: reason },
      })
    }
    // The next start then finds every change, without a hand.
    if (isWhole) {
      expect(await idsAt(url)).toEqual(idsFrom(1, 50))
    }
  },
)

/** Two thirds of the plants are removed first, so that VACUUM has something to give back. */
async function startWithFreePages() {
  const { file, url, store } = await start()
  expect(await store.insert(idsFrom(1, 3_000))).toEqual(Array(3_000).fill('inserted'))
  const other = new Database(file)
  onTestFinished(() => void other.close())
  other.exec('delete from plants where id > 1000')
  return { file, url, store, other }
}

test.each(['passive', 'truncate'])(
  'a served store that VACUUM of another program makes smaller goes on (%s)',
  async mode => {
    const { file, url, store, other } = await startWithFreePages()
    other.pragma('wal_checkpoint(passive)')
    const bytesBefore = statSync(file).size
    await pastLook()
    expect(await store.insert([5_000n])).toEqual(['inserted'])

    other.exec('vacuum')
    other.pragma(`wal_checkpoint(${mode})`)
    expect(statSync(file).size, 'the file is smaller').toBeLessThan(bytesBefore)
    await pastLook()

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
  await pastLook()
  expect(await store.insert([5_000n])).toEqual(['inserted'])

  writeFileSync(file, bytes)
  await pastLook()

  expect(await store.insert([9_000n])).toEqual(['store-unavailable'])
})

test.each<[string, Way]>([
  ['-wal', 'removed'],
  ['-shm', 'replaced'],
])(
  'a store that writes without a pause loses nothing that it answered if plants.db%s is %s',
  async (suffix, way) => {
    const { file, url, store } = await start()
    const { inserted, refused } = flood(store)
    await expect.poll(() => inserted.length).toBeGreaterThan(500)
    ways[way](file + suffix)
    await refused
    expect(await store.check()).toEqual(['store-unavailable'])
    await store.kill()
    const kept = new Set(await idsAt(url))
    expect(inserted.filter(id => !kept.has(id))).toEqual([])
  },
)

async function start() {
  const file = join(temporaryFolder(), 'plants.db')
  const url = `file:${file}`
  return { file, url, store: await startStoreProcess(url) }
}

test('once the shm is gone no change of another process is overwritten, however the store is stopped', async () => {
  const { file, url, store } = await start()
  expect(await store.insert(idsFrom(1, 50))).toEqual(Array(50).fill('inserted'))
  rmSync(`${file}-shm`)
  const other = await startStoreProcess(url)
  expect(await other.insert(idsFrom(200, 50))).toEqual(Array(50).fill('inserted'))
  await other.close()
  expect(await store.insert([100n])).toEqual(['store-unavailable'])
  await store.close()
  expect(await idsAt(url)).toEqual([...idsFrom(1, 50), ...idsFrom(200, 50)])
})

test('a process that finds a WAL cut under a running store changes nothing', async () => {
  const { file, url, store } = await start()
  expect(await store.insert(idsFrom(1, 50))).toEqual(Array(50).fill('inserted'))
  for (const displace of [
    () => truncateSync(`${file}-wal`),
    () => rmSync(`${file}-wal`),
  ]) {
    displace()
    await expect(openStorage({ url })).rejects.toThrow(/cannot be opened: /)
  }
  await store.kill()
})

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
      await pastLook()
      await expect(storage.plants.insert(plant(2))).rejects.toMatchObject(unavailable)
    }
    expect(await idsAt(`file:${file}`)).toEqual([1n])
  },
)

test('a link to itself is named as it is, and not opened', async () => {
  const link = join(temporaryFolder(), 'link.db')
  symlinkSync(link, link)
  const url = `file:${link}`
  expect(storeFiles(url)[0]).toBe(link)
  // Nor is it taken for a path without a store.
  for (const open of [
    () => openStorage({ url }),
    () => inspectStore(url),
    () => openReader(url),
  ]) {
    await expect(open()).rejects.toThrow(/cannot be opened: ELOOP/)
  }
})

test('a path through a link and back out of it is that of the system', () => {
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'releases', '7'), { recursive: true })
  symlinkSync(join('releases', '7'), join(folder, 'current'))
  expect(storeFiles(`file:${folder}/current/../plants.db`)[0]).toBe(
    join(folder, 'releases', 'plants.db'),
  )
})

test('a store with a second name, beside which there would be a second WAL, is not opened or restored', async () => {
  const folder = temporaryFolder()
  const file = join(folder, 'plants.db')
  await (await openStorage({ url: `file:${file}` }))[Symbol.asyncDispose]()
  const backup = join(folder, 'backup')
  await backUpStore(`file:${file}`, backup)
  // As some programs keep equal backups.
  linkSync(backup, `${backup}.2`)
  linkSync(file, join(folder, 'second.db'))
  const before = snapshot(folder)
  const refusal =
    /: it has another name, a hard link: remove the name that the server does not use, as SQLite /
  for (const name of ['plants.db', 'second.db']) {
    const url = `file:${join(folder, name)}`
    await expect(openStorage({ url })).rejects.toThrow(refusal)
    await expect(restoreStore(url, backup, { force: true })).rejects.toThrow(refusal)
  }
  expect(await inspectStore(`file:${backup}.2`)).toMatchObject({ counts: { plants: 0 } })
  expect(snapshot(folder)).toEqual(before)
})

test('nobody reads a store with changes in its WAL by another name of it', async () => {
  const folder = temporaryFolder()
  const [file, second] = [join(folder, 'plants.db'), join(folder, 'second.db')]
  await using storage = await openStorage({ url: `file:${file}` })
  await storage.plants.insert(plant(1))
  linkSync(file, second)
  for (const look of looks) {
    await expect(look(`file:${second}`)).rejects.toThrow(
      ': it has another name, a hard link: ',
    )
  }
  expect(readdirSync(folder).filter(name => name.startsWith('second'))).toEqual([
    'second.db',
  ])
})

test('a store that is mounted alone is not opened, nor read while its changes are in its WAL', async context => {
  const folder = temporaryFolder()
  const [file, mounted] = [join(folder, 'plants.db'), join(folder, 'a name')]
  await (await openStorage({ url: `file:${file}` }))[Symbol.asyncDispose]()
  writeFileSync(mounted, '')
  if (spawnSync('mount', ['--bind', file, mounted]).status !== 0) {
    return context.skip(mayNotMount)
  }
  const refusal = /: it is mounted alone: mount its folder, /
  try {
    await expect(openStorage({ url: `file:${mounted}` })).rejects.toThrow(refusal)
    // As a backup is, it is whole without a WAL.
    expect(await inspectStore(`file:${mounted}`)).toMatchObject({ counts: { plants: 0 } })
    await using storage = await openStorage({ url: `file:${file}` })
    await storage.plants.insert(plant(1))
    for (const look of looks) {
      await expect(look(`file:${mounted}`)).rejects.toThrow(refusal)
    }
  } finally {
    // A process that has read by it keeps it open.
    spawnSync('umount', ['--lazy', mounted])
  }
})
