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
  const storage = createStorage({
    ...database,
    runGroup: single.run,
    runBulkGroup: bulk.run,
    close,
  })
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
  await expect(storage.notes.insert(note(5))).rejects.toThrow(/^the store is closed$/)
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
  for (const attempt of attempts(broken)) {
    await expect(attempt()).rejects.toMatchObject({
      code: 'store-unavailable',
      message,
      cause,
    })
  }
  expect(reasons.splice(0)).toEqual(['the disk is full'])
  await broken[Symbol.asyncDispose]()
  const closed = failing(cause)
  await closed[Symbol.asyncDispose]()
  await expect(closed.check()).rejects.toThrow()
  expect(reasons).toEqual([])

  const busy = new StoreError('store-busy', 'too many')
  const full = failing(busy)
  for (const attempt of attempts(full)) {
    await expect(attempt()).rejects.toBe(busy)
  }
  expect(reasons).toEqual([])
  await full[Symbol.asyncDispose]()
})

test.each([
  ['checked', 'check'],
  ['written', 'runGroup'],
] as const)(
  "an outage lasts until the database can be %s, with reasons that the caller's errors lack",
  async (_, part) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const reasons: (string | undefined)[] = []
    let reason: string | undefined = 'the disk is full'
    const failing = async (group: readonly unknown[] = []) => {
      if (reason) {
        throw new Error(reason)
      }
      return group.map(() => 1)
    }
    await using storage = createStorage(
      { ...database, [part]: failing },
      {
        onFailureChange: reason => reasons.push(reason),
        translateError: ({ message }) => new Error(`ours: ${message}`),
      },
    )
    const pass = async (seconds: number) => {
      for (let second = 0; second < seconds; second++) {
        await vi.advanceTimersByTimeAsync(1_000)
        // The probe is a change too, which waits for its turn of the event loop.
        for (let turn = 0; turn < 3; turn++) {
          await nextTurn()
        }
      }
    }
    const asked = part === 'check' ? storage.check() : storage.notes.remove(1n)
    await expect(asked).rejects.toThrow(/^ours: the store is unavailable$/)
    reason = 'the disk fails'
    await pass(10)
    expect(reasons).toEqual(['the disk is full', 'the disk fails'])
    reason = undefined
    await pass(1)
    expect(reasons).toEqual(['the disk is full', 'the disk fails', undefined])
  },
)

test('10,000 bulk changes may be pending, or more of one call, beside as many single ones as their own limit', async () => {
  await using storage = createStorage(database, { queueChangesMax: 1 })
  const insertAll = async (count: number) => {
    const outcomes = await storage.notes.insertAll(
      Array.from({ length: count }, (_, id) => note(id)),
    )
    return outcomes.length
  }
  const attempts = [
    insertAll(1),
    insertAll(10_000),
    insertAll(9_999),
    storage.notes.insert(note(1)),
  ]
  const tooMany = { code: 'store-busy', message: 'too many changes are pending' }
  await expect(storage.notes.insert(note(2))).rejects.toMatchObject(tooMany)
  await expect(attempts[1]).rejects.toMatchObject(tooMany)
  expect(await Promise.all(attempts.toSpliced(1, 1))).toEqual([1, 9_999, true])
  expect(await insertAll(10_001)).toBe(10_001)
  expect(await insertAll(0)).toBe(0)
})
