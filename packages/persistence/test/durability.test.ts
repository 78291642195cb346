import assert from 'node:assert/strict'
import { join } from 'node:path'
import { int64Max, type Plant } from '@plant-store/domain'
import { noTracer, trace } from '@plant-store/harness'
import { openStorage } from '@plant-store/persistence'
import { expect, test } from 'vitest'
import {
  countInjected,
  countSyncs,
  flood,
  idsAt,
  idsFrom,
  type StoreProcess,
  startStoreProcess,
} from './processes.ts'
import { plant, temporaryFolder } from './store-folder.ts'
import { subjects } from './store-subjects.ts'

const newUrl = () => `file:${join(temporaryFolder(), 'plants.db')}`

test.each(Object.entries(subjects))(
  'of processes on %s that race for an id exactly one wins',
  async (_, openSubject) => {
    await using store = await openSubject()
    const starting = [startStoreProcess(store.url), startStoreProcess(store.url)]
    const processes = await Promise.all(starting)
    const ids = [...idsFrom(1, 100), int64Max]

    // Each process has another order, so that they lock the same rows in different
    // orders.
    const orders = [ids, ids.toReversed()]
    const inserted = await Promise.all(
      processes.map((process, n) => insertAs(process, orders[n] ?? [], `process ${n}`)),
    )

    const winners = inserted.flat().sort(byId)
    expect(winners.map(({ id }) => id)).toEqual(ids)
    {
      await using storage = await openStorage({ url: store.url })
      expect(await storage.plants.page({ limit: 1_000 })).toEqual(winners)
    }
    expect(await store.ask('select version from schema_version')).toHaveLength(1)
    const lists = await Promise.all(processes.map(process => process.list()))
    expect(lists, 'everybody sees them').toEqual([ids, ids])
    await Promise.all(processes.map(process => process.close()))
  },
)

function byId(a: Plant, b: Plant): number {
  return a.id < b.id ? -1 : 1
}

/** Lets a process insert plants of a name. Resolves to those that it has inserted. */
async function insertAs(process: StoreProcess, ids: readonly bigint[], name: string) {
  const outcomes = await process.insert(ids, name)
  const inserted = ids.filter((_, index) => outcomes[index] === 'inserted')
  return inserted.map(id => plant(id, name))
}

test('what was answered is stored after a kill in the middle of writing', async () => {
  const url = newUrl()
  const store = await startStoreProcess(url)
  const { inserted } = flood(store)
  await expect.poll(() => inserted.length).toBeGreaterThan(500)
  await store.kill()

  const kept = new Set(await idsAt(url))
  const lost = inserted.filter(id => !kept.has(id))
  expect(lost).toEqual([])
})

test('every change that is made alone is fsynced before it is answered', async context => {
  const store = await startStoreProcess(newUrl())
  const tracer = await traceOf(store)
  if (tracer === undefined) {
    return context.skip(noTracer)
  }
  const count = 50

  for (const id of idsFrom(1, count)) {
    expect(await store.insert([id]), `plant ${id}`).toEqual(['inserted'])
  }

  const calls = await tracer.detach()
  expect(countSyncs(calls)).toBeGreaterThanOrEqual(count)
  await store.close()
})

test('changes that come together share fsyncs', async context => {
  const store = await startStoreProcess(newUrl())
  const tracer = await traceOf(store)
  if (tracer === undefined) {
    return context.skip(noTracer)
  }
  const waves = 4
  const changesOfWave = 64

  for (let wave = 1; wave <= waves; wave++) {
    const outcomes = await store.insert(idsFrom(1000 * wave, changesOfWave))
    expect(outcomes, `wave ${wave}`).toEqual(Array(changesOfWave).fill('inserted'))
  }

  const syncs = countSyncs(await tracer.detach())
  expect(syncs).toBeGreaterThanOrEqual(waves)
  expect(syncs).toBeLessThan((waves * changesOfWave) / 4)
  await store.close()
})

test('the new folders of a store are on the disk, each in the one above', async context => {
  const folder = temporaryFolder()
  const tracer = await trace(process.pid)
  if (tracer === undefined) {
    return context.skip(noTracer)
  }

  await using _ = await openStorage({
    url: `file:${join(folder, 'a', 'b', 'plants.db')}`,
  })

  const calls = await tracer.detach()
  const syncedPaths = calls.map(call => /fsync\(\d+<([^>]*)>/.exec(call)?.[1])
  expect(syncedPaths).toEqual(expect.arrayContaining([folder, join(folder, 'a')]))
})

const pidOf = ({ process }: StoreProcess) => {
  assert(process.pid !== undefined, 'the process has started')
  return process.pid
}

/** Traces a process, and injects a fault of the disk. */
const traceOf = (store: StoreProcess, fault?: string) => trace(pidOf(store), fault)

test.for([
  { disk: 'that fails an fsync', fault: 'fsync,fdatasync:error=EIO:when=1' },
  { disk: 'that is full', fault: 'pwrite64:error=ENOSPC:when=1' },
])('changes that a disk $disk refuses are not kept', async ({ fault }, context) => {
  const url = newUrl()
  const store = await startStoreProcess(url)
  const before = idsFrom(1, 3)
  const refused = idsFrom(100, 3)
  const next = idsFrom(4, 3)
  expect(await store.insert(before)).toEqual(Array(3).fill('inserted'))
  const tracer = await traceOf(store, fault)
  if (tracer === undefined) {
    return context.skip(noTracer)
  }

  expect(await store.insert(refused)).toEqual(Array(3).fill('store-unavailable'))
  expect(await store.insert(next)).toEqual(Array(3).fill('inserted'))

  expect(countInjected(await tracer.detach())).toBe(1)
  expect(await store.list()).toEqual([...before, ...next])
  // A kill leaves only the WAL.
  await store.kill()
  expect(await idsAt(url)).toEqual([...before, ...next])
})

test('a disk that fails for a while is an outage, and no change is kept', async context => {
  const url = newUrl()
  const store = await startStoreProcess(url)
  expect(await store.insert([1n])).toEqual(['inserted'])
  const tracer = await traceOf(store, 'fsync,fdatasync:error=EIO')
  if (tracer === undefined) {
    return context.skip(noTracer)
  }

  expect(await store.insert([100n])).toEqual(['store-unavailable'])
  expect(await store.insert([101n])).toEqual(['store-unavailable'])
  expect(await store.check()).toEqual(['store-unavailable'])
  expect(await store.list()).toEqual([1n])

  await tracer.detach()
  await expect.poll(() => store.insert([200n])).toEqual(['inserted'])
  await store.kill()
  expect(await idsAt(url)).toEqual([1n, 200n])
})

test('a store can be closed while the disk fails', async context => {
  const store = await startStoreProcess(newUrl())
  const tracer = await traceOf(store, 'fsync,fdatasync:error=EIO')
  if (tracer === undefined) {
    return context.skip(noTracer)
  }
  expect(await store.insert([1n])).toEqual(['store-unavailable'])
  await store.close()
}, 10_000)
