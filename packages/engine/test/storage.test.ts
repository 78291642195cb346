import { setImmediate as nextTurn } from 'node:timers/promises'
import { compileEntities, type Storage, sqliteDialect } from '@plant-store/engine'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { StoreError } from '../src/errors.ts'
import { createStorage, type DatabaseDriver } from '../src/storage.ts'
import { type Entered, entities, note, notesFrom } from './notes.ts'

/** A database on which everything works. */
const working: DatabaseDriver = {
  compiled: compileEntities(entities, sqliteDialect),
  runGroup: async group => group.map(() => 1),
  groupsMax: Number.POSITIVE_INFINITY,
  read: async () => [],
  check: async () => {},
  close() {},
}

/** Opens a storage, whose driver has compiled these entities. */
function open(
  driver: DatabaseDriver,
  options?: Partial<Parameters<typeof createStorage>[1]>,
): Storage<Entered> {
  const storage = createStorage(driver, { translateError: error => error, ...options })
  return storage as Storage & Storage<Entered>
}

/** A queue whose transactions end once they are released. */
function heldQueue() {
  const { promise, resolve } = Promise.withResolvers<void>()
  async function run(group: readonly unknown[]): Promise<number[]> {
    await promise
    return group.map(() => 1)
  }
  return { run, release: resolve }
}

describe('changes that wait', () => {
  test('are pending until they have an outcome, in either queue', async () => {
    const single = heldQueue()
    const bulk = heldQueue()
    const storage = open({
      ...working,
      runGroup: single.run,
      runBulkGroup: bulk.run,
    })
    const many = storage.notes.insertAll(notesFrom(1, 3))
    const one = storage.notes.insert(note(4))
    expect(storage.pending()).toBe(4)

    await nextTurn()
    single.release()
    expect(await one).toBe(true)
    expect(storage.pending()).toBe(3)

    bulk.release()
    expect(await many).toEqual([true, true, true])
    expect(storage.pending()).toBe(0)
  })

  test('have their outcome before the database is closed', async () => {
    const bulk = heldQueue()
    const close = vi.fn()
    const storage = open({ ...working, runBulkGroup: bulk.run, close })
    const many = storage.notes.insertAll([note(1), note(2)])
    await nextTurn()

    const closing = storage[Symbol.asyncDispose]()
    await nextTurn()
    expect(close).not.toHaveBeenCalled()

    bulk.release()
    await closing
    expect(await many).toEqual([true, true])
    expect(close).toHaveBeenCalledOnce()
    await expect(storage.notes.insert(note(5))).rejects.toThrow(/^the store is closed$/)
  })
})

/** Everything that can be asked of a storage. */
const calls = {
  insert: ({ notes }: Storage<Entered>) => notes.insert(note(1)),
  insertAll: ({ notes }: Storage<Entered>) => notes.insertAll([note(1)]),
  find: ({ notes }: Storage<Entered>) => notes.find(1n),
  page: ({ notes }: Storage<Entered>) => notes.page(1),
  check: (storage: Storage<Entered>) => storage.check(),
}

/**
 * Opens a storage on a database on which everything fails, and keeps reported reasons.
 */
function openFailing(error: Error) {
  const fail = () => Promise.reject(error)
  const reasons: (string | undefined)[] = []
  const storage = open(
    { ...working, runGroup: fail, runBulkGroup: fail, read: fail, check: fail },
    { onFailureChange: reason => reasons.push(reason) },
  )
  onTestFinished(() => storage[Symbol.asyncDispose]())
  return { storage, reasons }
}

test.each(Object.entries(calls))(
  '%s on a database that fails is an outage',
  async (_, call) => {
    const cause = new Error('the disk is full')
    const failing = openFailing(cause)
    const busy = new StoreError('store-busy', 'too many')
    const full = openFailing(busy)

    const message = 'the store is unavailable'
    const outage = { code: 'store-unavailable', message, cause }
    await expect(call(failing.storage)).rejects.toMatchObject(outage)
    expect(failing.reasons).toEqual(['the disk is full'])
    await expect(call(full.storage), 'an error of the store').rejects.toBe(busy)
    expect(full.reasons).toEqual([])
  },
)

test.each([
  {
    part: 'check' as const,
    ask: (storage: Storage<Entered>) => storage.check(),
  },
  {
    part: 'runGroup' as const,
    ask: ({ notes }: Storage<Entered>) => notes.remove(1n),
  },
])(
  'an outage of $part has its reasons, and ends once it works',
  async ({ part, ask }) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const reasons: (string | undefined)[] = []
    let reason: string | undefined = 'the disk is full'
    const failing = async (group: readonly unknown[] = []) => {
      if (reason !== undefined) {
        throw new Error(reason)
      }
      return group.map(() => 1)
    }
    await using storage = open(
      { ...working, [part]: failing },
      {
        onFailureChange: each => reasons.push(each),
        translateError: ({ message }) => new Error(`ours: ${message}`),
      },
    )

    await expect(ask(storage)).rejects.toThrow(/^ours: the store is unavailable$/)
    reason = 'the disk fails'
    await passSeconds(10)
    expect(reasons).toEqual(['the disk is full', 'the disk fails'])

    reason = undefined
    await passSeconds(1)
    expect(reasons).toEqual(['the disk is full', 'the disk fails', undefined])
  },
)

/** Lets time pass. The probe is a change, which waits for its turn of the event loop. */
async function passSeconds(seconds: number) {
  for (let second = 0; second < seconds; second++) {
    await vi.advanceTimersByTimeAsync(1_000)
    await nextTurn()
    await nextTurn()
    await nextTurn()
  }
}

describe('the limit of pending changes', () => {
  const tooMany = { code: 'store-busy', message: 'too many changes are pending' }

  test('is an option for single ones, and 10,000 for bulk ones', async () => {
    await using storage = open(working, { queueChangesMax: 1 })

    const single = storage.notes.insert(note(1))
    const second = storage.notes.insert(note(2))
    const one = storage.notes.insertAll(notesFrom(0, 1))
    const above = storage.notes.insertAll(notesFrom(0, 10_000))
    const rest = storage.notes.insertAll(notesFrom(0, 9_999))

    await expect(second).rejects.toMatchObject(tooMany)
    await expect(above).rejects.toMatchObject(tooMany)
    expect(await one).toHaveLength(1)
    expect(await rest).toHaveLength(9_999)
    expect(await single).toBe(true)
    expect(await storage.notes.insertAll([])).toEqual([])
  })
})
