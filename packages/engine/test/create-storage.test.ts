import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  compileEntities,
  createStorage,
  type DatabaseDriver,
  StoreError,
  sqliteDialect,
} from '@plant-store/engine'
import { expect, onTestFinished, test, vi } from 'vitest'
import { type Entered, entities, note } from './notes.ts'

const database: DatabaseDriver<Entered> = {
  compiled: compileEntities(entities, sqliteDialect),
  runGroup: async group => group.map(() => 1),
  groupsMax: Number.POSITIVE_INFINITY,
  read: async () => [],
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
  const many = storage.notes.insertAll([note(1), note(2), note(3)])
  const one = storage.notes.insert(note(4))
  expect(storage.pending()).toBe(4)
  await nextTurn()
  single.release()
  expect(await one).toBe(true)
  expect(storage.pending()).toBe(3)
  const closing = storage[Symbol.asyncDispose]()
  await nextTurn()
  expect(events).toEqual([])
  bulk.release()
  expect(await many).toEqual(Array(3).fill(true))
  await closing
  expect(events).toEqual(['closed'])
  expect(storage.pending()).toBe(0)
})

test('what fails in the database is an outage with its cause, and an error of the store stays what it is', async () => {
  const reasons: (string | undefined)[] = []
  const failing = (error: Error) => {
    const fail = () => Promise.reject(error)
    return createStorage(
      { ...database, runGroup: fail, runBulkGroup: fail, read: fail, check: fail },
      { onFailureChange: reason => reasons.push(reason) },
    )
  }
  const attempts = ({ notes, check }: ReturnType<typeof failing>) => [
    () => notes.insert(note(1)),
    () => notes.insertAll([note(1)]),
    () => notes.find(1n),
    () => notes.page(1),
    () => check(),
  ]
  const cause = new Error('the disk is full')
  const broken = failing(cause)
  const message = 'the store is unavailable'
  for (const attempt of attempts(broken))
    await expect(attempt()).rejects.toMatchObject({ code: 'store-unavailable', message, cause })
  expect(reasons.splice(0)).toEqual(['the disk is full'])
  await broken[Symbol.asyncDispose]()
  const closed = failing(cause)
  await closed[Symbol.asyncDispose]()
  await expect(closed.check()).rejects.toThrow()
  expect(reasons).toEqual([])

  const busy = new StoreError('store-busy', 'too many')
  const full = failing(busy)
  for (const attempt of attempts(full)) await expect(attempt()).rejects.toBe(busy)
  expect(reasons).toEqual([])
  await full[Symbol.asyncDispose]()
})

test.each([
  ['checked', 'check'],
  ['written', 'runGroup'],
] as const)('an outage lasts until the database can be %s', async (_, part) => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const reasons: (string | undefined)[] = []
  let isBroken = true
  const failing = async (group: readonly unknown[] = []) => {
    if (isBroken) throw new Error('the disk fails')
    return group.map(() => 1)
  }
  const onFailureChange = (reason?: string) => void reasons.push(reason)
  await using storage = createStorage({ ...database, [part]: failing }, { onFailureChange })
  const ask = () => (part === 'check' ? storage.check() : storage.notes.remove(1n))
  const pass = async (seconds: number) => {
    for (let second = 0; second < seconds; second++) {
      await vi.advanceTimersByTimeAsync(1_000)
      // The probe is a change too, which waits for its turn of the event loop.
      for (let turn = 0; turn < 3; turn++) await nextTurn()
    }
  }
  await expect(ask()).rejects.toThrow()
  await pass(10)
  expect(reasons).toEqual(['the disk fails'])
  isBroken = false
  await pass(1)
  expect(reasons).toEqual(['the disk fails', undefined])
})

test("an outage is told with every reason that lasts, also if the caller's errors have none", async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const reasons: (string | undefined)[] = []
  let reason: string | undefined = 'the disk is full'
  const check = async () => {
    if (reason) throw new Error(reason)
  }
  const translateError = ({ message }: StoreError) => new Error(`ours: ${message}`)
  await using storage = createStorage(
    { ...database, check },
    { onFailureChange: reason => reasons.push(reason), translateError },
  )
  await expect(storage.check()).rejects.toThrow(/^ours: the store is unavailable$/)
  reason = 'the disk fails'
  const pass = async () => {
    await vi.advanceTimersByTimeAsync(1_000)
    for (let turn = 0; turn < 3; turn++) await nextTurn()
  }
  await pass()
  reason = undefined
  await pass()
  expect(reasons).toEqual(['the disk is full', 'the disk fails', undefined])
})
