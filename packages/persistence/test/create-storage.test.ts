import { setImmediate as nextTurn } from 'node:timers/promises'
import { DomainError } from '@plant-store/domain'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createStorage, rowsWithin, type StatementDatabase } from '../src/commit/create-storage.ts'
import { statements } from '../src/sqlite/engine.ts'
import type { StoreState } from '../src/storage.ts'
import { plant, plantId } from './store-folder.ts'

const database: StatementDatabase = {
  statements,
  runGroup: async group => group.map(() => 1),
  groupsMax: Number.POSITIVE_INFINITY,
  read: async () => [],
  readPage: async () => [],
  check: async () => {},
  close() {},
}

/** A queue whose transactions end when they are released. */
function queue() {
  const { promise, resolve } = Promise.withResolvers<void>()
  const run = async (group: readonly unknown[]) => {
    await promise
    return group.map(() => 1)
  }
  return { run, release: resolve }
}

test('changes of both queues are pending until they have an outcome, and the database is closed after the last', async () => {
  const [single, bulk] = [queue(), queue()]
  const events: string[] = []
  const close = () => void events.push('closed')
  const storage = createStorage({ ...database, runGroup: single.run, runBulkGroup: bulk.run, close })
  const many = storage.plants.insertAll?.([plant(1), plant(2), plant(3)])
  const one = storage.plants.insert(plant(4))
  expect(storage.pending()).toBe(4)
  await nextTurn()
  single.release()
  expect(await one).toBe('inserted')
  expect(storage.pending()).toBe(3)
  const closing = storage[Symbol.asyncDispose]()
  await nextTurn()
  expect(events).toEqual([])
  bulk.release()
  expect(await many).toEqual(Array(3).fill('inserted'))
  await closing
  expect(events).toEqual(['closed'])
  expect(storage.pending()).toBe(0)
})

test('what fails in the database is an outage with its cause, and an error of the domain stays what it is', async () => {
  const states: StoreState[] = []
  const failing = (error: Error) => {
    const fail = () => Promise.reject(error)
    return createStorage(
      { ...database, runGroup: fail, runBulkGroup: fail, read: fail, readPage: fail, check: fail },
      { onStateChange: state => states.push(state) },
    )
  }
  const attempts = ({ plants, check }: ReturnType<typeof failing>) => [
    () => plants.insert(plant(1)),
    () => plants.insertAll?.([plant(1)]),
    () => plants.find(plantId(1)),
    () => plants.page({ limit: 1 }),
    () => check(),
  ]
  const cause = new Error('the disk is full')
  const broken = failing(cause)
  const message = 'the store is unavailable'
  for (const attempt of attempts(broken))
    await expect(attempt()).rejects.toMatchObject({ code: 'store-unavailable', message, cause })
  expect(states.splice(0)).toEqual([{ ready: false, reason: 'the disk is full' }])
  await broken[Symbol.asyncDispose]()
  const closed = failing(cause)
  await closed[Symbol.asyncDispose]()
  await expect(closed.check()).rejects.toThrow()
  expect(states).toEqual([])

  const busy = new DomainError('store-busy', 'too many')
  const full = failing(busy)
  for (const attempt of attempts(full)) await expect(attempt()).rejects.toBe(busy)
  expect(states).toEqual([])
  await full[Symbol.asyncDispose]()
})

test.each([
  ['checked', 'check'],
  ['written', 'runGroup'],
] as const)('an outage lasts until the database can be %s', async (_, part) => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const states: boolean[] = []
  let isBroken = true
  const failing = async (group: readonly unknown[] = []) => {
    if (isBroken) throw new Error('the disk fails')
    return group.map(() => 1)
  }
  const onStateChange = ({ ready }: StoreState) => void states.push(ready)
  await using storage = createStorage({ ...database, [part]: failing }, { onStateChange })
  const ask = () => (part === 'check' ? storage.check() : storage.plants.remove(plantId(1)))
  const pass = async (seconds: number) => {
    for (let second = 0; second < seconds; second++) {
      await vi.advanceTimersByTimeAsync(1_000)
      // The probe is a change too, which waits for its turn of the event loop.
      for (let turn = 0; turn < 3; turn++) await nextTurn()
    }
  }
  await expect(ask()).rejects.toThrow()
  await pass(10)
  expect(states).toEqual([false])
  isBroken = false
  await pass(1)
  expect(states).toEqual([false, true])
})

test('a page ends with the row that reaches its size', () => {
  const rows = ['ab', 'é', 'c'].map((name, id) => ({ id: BigInt(id), name, tag: null }))
  const counts = [1, 2, 3, 4, 5, 6].map(textBytesMax => rowsWithin(textBytesMax, rows).length)
  expect(counts).toEqual([1, 1, 2, 2, 3, 3])
})
