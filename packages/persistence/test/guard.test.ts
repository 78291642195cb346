import { spawnSync } from 'node:child_process'
import {
  copyFileSync,
  linkSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { mayNotMount } from '@plant-store/harness/vitest'
import {
  backUpStore,
  inspectStore,
  openReader,
  openSalvage,
  openStorage,
  restoreStore,
  storeFiles,
} from '@plant-store/persistence'
import { describe, expect, test } from 'vitest'
import { type StoreProcess, startStoreProcess } from './processes.ts'
import { plant, snapshot, temporaryFolder } from './store-folder.ts'
import type { Answer } from './store-process.ts'

const ways = {
  removed: (path: string) => rmSync(path),
  moved: (path: string) => renameSync(path, `${path}.moved`),
  replaced(path: string) {
    copyFileSync(path, `${path}.copy`)
    renameSync(`${path}.copy`, path)
  },
  'cut off': (path: string) => truncateSync(path),
  'cut short': (path: string) => truncateSync(path, statSync(path).size / 2),
}
type Way = keyof typeof ways

const cases = ['', '-wal', '-shm'].flatMap(suffix =>
  (Object.keys(ways) as Way[])
    // Whoever then looks into the shm is killed by the system (SIGBUS).
    .filter(way => suffix !== '-shm' || !way.startsWith('cut'))
    .map(way => [suffix, way] as const),
)
/** Those after which the next start finds every change, without a hand. */
const isWhole = (suffix: string, way: Way) => suffix !== '' && !way.startsWith('cut')

const unavailable = { code: 'store-unavailable' }
const ids = (from: number, count: number) => Array.from({ length: count }, (_, n) => BigInt(from + n))

async function start() {
  const file = join(temporaryFolder(), 'plants.db')
  const url = `file:${file}`
  return { file, url, store: await startStoreProcess(url) }
}

async function idsAt(url: string): Promise<bigint[]> {
  await using storage = await openStorage({ url })
  return (await storage.plants.page({ limit: 1_000_000 })).map(({ id }) => id)
}

/** Returns the ids that the store says it has inserted, from now on, and when it has refused all that were under way. */
function flood(store: StoreProcess) {
  const inserted: bigint[] = []
  const refused = Promise.withResolvers<void>()
  store.process.on('message', (answer: Answer) => {
    if ('inserted' in answer) inserted.push(answer.inserted)
    if ('refused' in answer) refused.resolve()
  })
  store.process.send({ flood: 16 })
  return { inserted, refused: refused.promise }
}

test('without a change too, a store is not ready soon after its file is removed', async () => {
  const file = join(temporaryFolder(), 'plants.db')
  await using storage = await openStorage({ url: `file:${file}` })
  rmSync(file)
  await expect
    .poll(() =>
      storage.check().then(
        () => 'ready',
        ({ code }) => code,
      ),
    )
    .toBe('store-unavailable')
})

test.each(cases)('if plants.db%s is %s, a store refuses the next change', async (suffix, way) => {
  const file = join(temporaryFolder(), 'plants.db')
  const url = `file:${file}`
  {
    await using storage = await openStorage({ url })
    await Promise.all(ids(1, 50).map(id => storage.plants.insert(plant(id))))
    await sleep(20)
    ways[way](file + suffix)
    await expect(storage.plants.insert(plant(100))).rejects.toMatchObject(unavailable)
    await expect(storage.check()).rejects.toMatchObject(unavailable)
  }
  if (isWhole(suffix, way)) expect(await idsAt(url)).toEqual(ids(1, 50))
})

// While each file is looked at beside the writes. The ways differ in nothing else.
test.each<[string, Way]>([
  ['', 'removed'],
  ['-wal', 'moved'],
  ['-wal', 'cut off'],
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
    if (!isWhole(suffix, way)) return
    const kept = new Set(await idsAt(url))
    expect(inserted.filter(id => !kept.has(id))).toEqual([])
  },
)

test('a shm that was cut kills the process, and nothing that it answered is lost', async () => {
  const { file, url, store } = await start()
  const { inserted } = flood(store)
  await expect.poll(() => inserted.length).toBeGreaterThan(500)
  truncateSync(`${file}-shm`)
  await expect.poll(() => store.process.signalCode).toBe('SIGBUS')
  const kept = new Set(await idsAt(url))
  expect(inserted.filter(id => !kept.has(id))).toEqual([])
})

test('once the shm is gone no change of another process is overwritten, however the store is stopped', async () => {
  const { file, url, store } = await start()
  expect(await store.insert(ids(1, 50))).toEqual(Array(50).fill('inserted'))
  await sleep(20)
  rmSync(`${file}-shm`)
  const other = await startStoreProcess(url)
  expect(await other.insert(ids(200, 50))).toEqual(Array(50).fill('inserted'))
  await other.close()
  expect(await store.insert([100n])).toEqual(['store-unavailable'])
  await store.close()
  expect(await idsAt(url)).toEqual([...ids(1, 50), ...ids(200, 50)])
})

test('a process that finds a WAL cut under a running store changes nothing', async () => {
  const { file, url, store } = await start()
  expect(await store.insert(ids(1, 50))).toEqual(Array(50).fill('inserted'))
  for (const displace of [() => truncateSync(`${file}-wal`), () => rmSync(`${file}-wal`)]) {
    displace()
    await expect(openStorage({ url })).rejects.toThrow(/cannot be opened: /)
  }
  await store.kill()
})

const links: Record<string, (link: string, file: string) => void> = {
  'a relative link to a link'(link, file) {
    symlinkSync(file, `${link}.second`)
    symlinkSync('link.db.second', link)
  },
  'a link in a folder that is a link'(link, file) {
    rmSync(dirname(link), { recursive: true })
    mkdirSync(join(dirname(file), 'links'), { recursive: true })
    symlinkSync(join(dirname(file), 'links'), dirname(link))
    symlinkSync('../plants.db', link)
  },
}
describe.each(Object.entries(links))('a store behind %s', (_, make) => {
  test.each(['exists', 'is made'])('that %s is guarded where it is', async how => {
    const folder = temporaryFolder()
    const file = join(folder, 'real', 'plants.db')
    const link = join(folder, 'named', 'link.db')
    mkdirSync(dirname(link))
    make(link, file)
    if (how === 'exists') await (await openStorage({ url: `file:${file}` }))[Symbol.asyncDispose]()
    const url = `file:${link}`
    expect(storeFiles(url).slice(0, 2)).toEqual([file, `${file}-wal`])
    {
      await using storage = await openStorage({ url })
      await storage.plants.insert(plant(1))
      await sleep(20)
      rmSync(`${file}-wal`)
      await expect(storage.plants.insert(plant(2))).rejects.toMatchObject({ code: 'store-unavailable' })
    }
    expect(await idsAt(`file:${file}`)).toEqual([1n])
  })
})

test('a link to itself is named as it is, and not opened', async () => {
  const link = join(temporaryFolder(), 'link.db')
  symlinkSync(link, link)
  expect(storeFiles(`file:${link}`)[0]).toBe(link)
  // Nor is it taken for a path without a store.
  for (const open of [
    () => openStorage({ url: `file:${link}` }),
    ...[inspectStore, openReader].map(read => () => read(`file:${link}`)),
  ])
    await expect(open()).rejects.toThrow(/cannot be opened: ELOOP/)
})

test('a path through a link and back out of it is that of the system', () => {
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'releases', '7'), { recursive: true })
  symlinkSync(join('releases', '7'), join(folder, 'current'))
  expect(storeFiles(`file:${folder}/current/../plants.db`)[0]).toBe(join(folder, 'releases', 'plants.db'))
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

const reads: Readonly<Record<string, (url: string) => Promise<unknown>>> = {
  check: inspectStore,
  export: openReader,
  salvage: openSalvage,
  backup: url => backUpStore(url, join(temporaryFolder(), 'backup')),
  restore: url => restoreStore(`file:${temporaryFolder()}/other.db`, url.slice('file:'.length)),
}

test.each(Object.entries(reads))(
  '%s of a store with changes in its WAL refuses another name of it',
  async (_, read) => {
    const folder = temporaryFolder()
    const [file, second] = [join(folder, 'plants.db'), join(folder, 'second.db')]
    await using storage = await openStorage({ url: `file:${file}` })
    await storage.plants.insert(plant(1))
    linkSync(file, second)
    await expect(read(`file:${second}`)).rejects.toThrow(': it has another name, a hard link: ')
    expect(readdirSync(folder).filter(name => name.startsWith('second'))).toEqual(['second.db'])
  },
)

test('a store that is mounted alone is not opened, nor read while its changes are in its WAL', async context => {
  const folder = temporaryFolder()
  const [file, mounted] = [join(folder, 'plants.db'), join(folder, 'a name')]
  await (await openStorage({ url: `file:${file}` }))[Symbol.asyncDispose]()
  writeFileSync(mounted, '')
  if (spawnSync('mount', ['--bind', file, mounted]).status !== 0) return context.skip(mayNotMount)
  const refusal = /: it is mounted alone: mount its folder, /
  try {
    await expect(openStorage({ url: `file:${mounted}` })).rejects.toThrow(refusal)
    // As a backup is, it is whole without a WAL.
    expect(await inspectStore(`file:${mounted}`)).toMatchObject({ counts: { plants: 0 } })
    await using storage = await openStorage({ url: `file:${file}` })
    await storage.plants.insert(plant(1))
    for (const read of Object.values(reads)) await expect(read(`file:${mounted}`)).rejects.toThrow(refusal)
  } finally {
    // A process that has read by it keeps it open.
    spawnSync('umount', ['--lazy', mounted])
  }
})
