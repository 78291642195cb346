import { join } from 'node:path'
import { int64Max } from '@plant-store/domain'
import { noTracer, trace } from '@plant-store/harness'
import { openStorage } from '@plant-store/persistence'
import { expect, test } from 'vitest'
import {
  countInjected,
  countSyncs,
  flood,
  idsAt,
  idsFrom,
  startStoreProcess,
} from './processes.ts'
import { plant, temporaryFolder } from './store-folder.ts'
import { subjects } from './store-subjects.ts'

const newUrl = () => `file:${join(temporaryFolder(), 'plants.db')}`
test.each(Object.entries(subjects))(
  'of several processes on %s that start together and race for an id exactly one wins, and everybody sees whose it is',
  async (_, make) => {
    await using store = await make()
    const processes = await Promise.all([0, 1].map(() => startStoreProcess(store.url)))
    const raced = [...idsFrom(1, 100), int64Max]
    const inserted = await Promise.all(
      // Each in an order of its own, so that they lock the same rows in different orders.
      processes.map(async (each, n) => {
        const ids = n % 2 === 0 ? raced : raced.toReversed()
        const outcomes = await each.insert(ids, `process ${n}`)
        return ids
          .filter((_, at) => outcomes[at] === 'inserted')
          .map(id => plant(id, `process ${n}`))
      }),
    )
    const winners = inserted.flat().sort((a, b) => (a.id < b.id ? -1 : 1))
    expect(winners.map(({ id }) => id)).toEqual(raced)
    {
      await using storage = await openStorage({ url: store.url })
      expect(await storage.plants.page({ limit: 1_000 })).toEqual(winners)
    }
    expect(await store.ask('select version from schema_version')).toHaveLength(1)
    for (const each of processes) {
      expect(await each.list()).toEqual(raced)
      await each.close()
    }
  },
)

test('what was answered is stored after a kill in the middle of writing', async () => {
  const url = newUrl()
  const store = await startStoreProcess(url)
  const { inserted } = flood(store)
  await expect.poll(() => inserted.length).toBeGreaterThan(500)
  await store.kill()
  const kept = new Set(await idsAt(url))
  expect(inserted.filter(id => !kept.has(id))).toEqual([])
})

test('every change that is made alone is fsynced before it is answered, and changes that come together share', async context => {
  const store = await startStoreProcess(newUrl())
  const pid = store.process.pid as number

  const alone = await trace(pid)
  if (alone === undefined) {
    return context.skip(noTracer)
  }
  const count = 50
  for (const id of idsFrom(1, count)) {
    expect(await store.insert([id])).toEqual(['inserted'])
  }
  expect(countSyncs(await alone.detach())).toBeGreaterThanOrEqual(count)

  const shared = await trace(pid)
  const waves = 4
  for (let wave = 1; wave <= waves; wave++) {
    expect(await store.insert(idsFrom(1000 * wave, 64))).toEqual(
      Array(64).fill('inserted'),
    )
  }
  const syncs = countSyncs((await shared?.detach()) ?? [])
  expect(syncs).toBeGreaterThanOrEqual(waves)
  expect(syncs).toBeLessThan((waves * 64) / 4)
  await store.close()
})

test('the folders that are made for a store are on the disk, each in the one above it', async context => {
  const folder = temporaryFolder()
  const tracer = await trace(process.pid)
  if (tracer === undefined) {
    return context.skip(noTracer)
  }
  await using _ = await openStorage({
    url: `file:${join(folder, 'a', 'b', 'plants.db')}`,
  })
  const synced = (await tracer.detach()).map(
    call => /fsync\(\d+<([^>]*)>/.exec(call)?.[1],
  )
  expect(synced).toEqual(expect.arrayContaining([folder, join(folder, 'a')]))
})

test('changes that the disk refuses are refused and not kept, and those after them are fine', async context => {
  const url = newUrl()
  const store = await startStoreProcess(url)
  const inject = (fault: string) => trace(store.process.pid as number, fault)
  const kept = idsFrom(1, 3)
  expect(await store.insert(kept)).toEqual(Array(3).fill('inserted'))

  // It fails an fsync, and is full.
  for (const fault of [
    'fsync,fdatasync:error=EIO:when=1',
    'pwrite64:error=ENOSPC:when=1',
  ]) {
    const tracer = await inject(fault)
    if (tracer === undefined) {
      return context.skip(noTracer)
    }
    const [refused, next] = [idsFrom(100, 3), idsFrom(kept.length + 1, 3)]
    expect(await store.insert(refused), fault).toEqual(Array(3).fill('store-unavailable'))
    expect(await store.insert(next), fault).toEqual(Array(3).fill('inserted'))
    expect(countInjected(await tracer.detach())).toBe(1)
    kept.push(...next)
    expect(await store.list()).toEqual(kept)
  }

  // It fails every fsync for a while.
  const tracer = await inject('fsync,fdatasync:error=EIO')
  for (const id of idsFrom(100, 3)) {
    expect(await store.insert([id])).toEqual(['store-unavailable'])
  }
  expect(await store.check()).toEqual(['store-unavailable'])
  expect(await store.list()).toEqual(kept)
  await tracer?.detach()
  await expect.poll(() => store.insert([200n]), { timeout: 10_000 }).toEqual(['inserted'])

  // Not closed in order: what is in the WAL is all that there is of it.
  await store.kill()
  expect(await idsAt(url)).toEqual([...kept, 200n])
})

test('a store can be closed while the disk fails', async context => {
  const store = await startStoreProcess(newUrl())
  const tracer = await trace(store.process.pid as number, 'fsync,fdatasync:error=EIO')
  if (tracer === undefined) {
    return context.skip(noTracer)
  }
  expect(await store.insert([1n])).toEqual(['store-unavailable'])
  await store.close()
}, 10_000)
