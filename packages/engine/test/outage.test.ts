import { copyFileSync, mkdirSync, renameSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { explain, isDamage, StoreError } from '@plant-store/engine'
import { temporaryFolder } from '@plant-store/harness/vitest'
import Database from 'better-sqlite3'
import { expect, onTestFinished, test, vi } from 'vitest'
import { StoreDamagedError } from '../src/errors.ts'
import { watchOutages } from '../src/outage.ts'
import { backUpStore, type Notes, note, openStorage } from './notes.ts'

test('a store that another program locks is reported once, however many changes fail, and once when it works', async () => {
  const file = `${temporaryFolder()}/notes.db`
  const reasons: (string | undefined)[] = []
  await using storage = await openStorage({
    url: `file:${file}`,
    lockTimeoutMs: 20,
    onFailureChange: reason => reasons.push(reason),
  })
  const insert = (ids: number[]) =>
    Promise.all(ids.map(id => storage.notes.insert(note(id)).catch(error => error.code)))
  expect(await insert([1])).toEqual([true])
  expect(reasons).toEqual([])

  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const locking = new Database(file)
  locking.exec('begin immediate')
  expect(await insert([2, 3, 4])).toEqual(Array(3).fill('store-unavailable'))
  // Nothing was written, so nothing is to be overwritten.
  await storage.check()
  expect(await insert([5])).toEqual(['store-unavailable'])
  const failing = 'another program keeps it locked (SQLITE_BUSY)'
  expect(reasons).toEqual([failing])

  locking.exec('rollback')
  locking.close()
  expect(await insert([2, 3])).toEqual(Array(2).fill(true))
  while (reasons.length < 2) {
    vi.advanceTimersByTime(1_000)
    await nextTurn()
  }
  expect(reasons).toEqual([failing, undefined])
})

test.for([
  [
    'is in a folder that moves away',
    'removed, moved',
    (file: string) => renameSync(dirname(file), `${dirname(file)}-moved`),
  ],
  ['is overwritten by a backup', 'overwritten', (file: string) => copyFileSync(`${file}-backup`, file)],
  [
    'is overwritten by its former state',
    'overwritten',
    (file: string) => copyFileSync(`${file}-before`, file),
  ],
] as const)(
  'a store whose file %s answers no change, and says so without one',
  async ([, reason, displace]) => {
    const folder = join(temporaryFolder(), 'data')
    mkdirSync(folder)
    const file = join(folder, 'notes.db')
    await (await openStorage({ url: `file:${file}` }))[Symbol.asyncDispose]()
    copyFileSync(file, `${file}-before`)
    const failing = Promise.withResolvers<string | undefined>()
    await using store = await openStorage({
      url: `file:${file}`,
      groupChangesMax: 1,
      onFailureChange: failing.resolve,
    })
    expect(await store.notes.insert(note(1))).toBe(true)
    // Not smaller than the store, whose WAL was never copied.
    await backUpStore(`file:${file}`, `${file}-backup`)
    displace(file)
    const seenUntilMs = performance.now() + filesSeenMaxAgeMs
    while (performance.now() <= seenUntilMs) await nextTurn()
    // The second one is under way before the store knows of its outage.
    expect(await Promise.all([refusalOf(store.notes), refusalOf(store.notes)])).toEqual(
      Array(2).fill('store-unavailable'),
    )
    expect(await failing.promise).toContain(reason)
    await expect(store.check()).rejects.toMatchObject({
      code: 'store-unavailable',
      message: 'the store cannot write',
      cause: { message: expect.stringContaining(reason) },
    })
  },
)

test('a store whose files are moved and put back is reported twice, without a change or a check', async () => {
  const file = join(temporaryFolder(), 'notes.db')
  const changes = [Promise.withResolvers<string | undefined>(), Promise.withResolvers<string | undefined>()]
  const [failed, works] = changes.map(({ promise }) => promise)
  await using _store = await openStorage({
    url: `file:${file}`,
    onFailureChange: reason => changes.shift()?.resolve(reason),
  })
  renameSync(file, `${file}.moved`)
  expect(await failed).toContain('removed, moved')
  renameSync(`${file}.moved`, file)
  expect(await works).toBeUndefined()
  expect(changes).toEqual([])
})

/** A change in these milliseconds may still be answered: looking at the files each time would cost too much. */
const filesSeenMaxAgeMs = 10

const refusalOf = (notes: Notes) =>
  notes.save(note(3)).then(
    () => undefined,
    error => error.code,
  )

test('what is asked of a store that is closed is refused, and not reported', async () => {
  const reasons: (string | undefined)[] = []
  const storage = await openStorage({
    url: `file:${join(temporaryFolder(), 'notes.db')}`,
    onFailureChange: reason => reasons.push(reason),
  })
  await storage[Symbol.asyncDispose]()
  const closed = {
    code: 'store-unavailable',
    message: 'the store could not be read',
    cause: { message: expect.stringContaining('not open') },
  }
  await expect(storage.check()).rejects.toMatchObject(closed)
  await expect(storage.notes.page(1)).rejects.toMatchObject(closed)
  expect(reasons).toEqual([])
})

const unavailable = (reason: string) =>
  new StoreError('store-unavailable', 'the store could not write the change', { cause: new Error(reason) })

/** A watch over a store that fails as it is told to. */
function watch() {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const reasons: string[] = []
  const asked: string[] = []
  const store: { check?: Error | undefined; change?: Error | undefined } = {}
  const ask = async (part: 'check' | 'change') => {
    asked.push(part)
    if (store[part]) throw store[part]
  }
  const { report, end } = watchOutages(
    async () => {
      await ask('check')
      await ask('change')
    },
    (reason = 'works') => reasons.push(reason),
  )
  return {
    reasons,
    asked,
    store,
    end,
    fail: report,
  }
}

test('an outage is reported with each new reason that lasts, and ends after a second without a failure', async () => {
  const { reasons, asked, store, fail } = watch()
  fail(new StoreError('store-busy', 'too many'))
  await vi.advanceTimersByTimeAsync(10_000)
  expect([reasons, asked]).toEqual([[], []])

  fail(unavailable('the disk is full'))
  fail(unavailable('the disk fails'))
  await vi.advanceTimersByTimeAsync(999)
  expect([reasons, asked]).toEqual([['the disk is full'], []])
  store.change = unavailable('the disk fails')
  await vi.advanceTimersByTimeAsync(1)
  expect(asked.splice(0)).toEqual(['check', 'change'])
  store.check = new StoreError('store-unavailable', 'it is gone')
  await vi.advanceTimersByTimeAsync(2_000)
  expect(asked.splice(0)).toEqual(['check', 'check'])
  store.check = new StoreError('store-busy', 'too many')
  await vi.advanceTimersByTimeAsync(1_000)
  store.check = undefined
  store.change = undefined
  fail(unavailable('a last time'))
  await vi.advanceTimersByTimeAsync(1_000)
  expect(reasons).toEqual(['the disk is full', 'the disk fails', 'it is gone'])
  await vi.advanceTimersByTimeAsync(1_000)
  expect(reasons.splice(0)).toEqual(['the disk is full', 'the disk fails', 'it is gone', 'works'])
  asked.splice(0)
  await vi.advanceTimersByTimeAsync(10_000)
  expect([reasons, asked]).toEqual([[], []])

  fail(new StoreError('store-unavailable', 'it is gone'))
  expect(reasons).toEqual(['it is gone'])
  await vi.advanceTimersByTimeAsync(1_000)
  expect(reasons).toEqual(['it is gone', 'works'])
})

test('nothing is reported once the watch has ended, also of a check that is under way', async () => {
  const { reasons, asked, store, end, fail } = watch()
  fail(unavailable('the disk is full'))
  store.check = unavailable('the disk fails')
  vi.advanceTimersByTime(1_000)
  end()
  fail(unavailable('the disk fails'))
  await vi.advanceTimersByTimeAsync(10_000)
  expect([reasons, asked]).toEqual([['the disk is full'], ['check']])

  const another = watch()
  another.fail(unavailable('the disk is full'))
  another.end()
  expect(vi.getTimerCount()).toBe(0)
})

test('an error is explained with its reason, unless it has it', () => {
  expect(explain(unavailable('the disk is full'))).toBe(
    'the store could not write the change: the disk is full',
  )
  expect(explain(new StoreError('store-busy', 'too many'))).toBe('too many')
  expect(explain(new Error('other', { cause: new Error('why') }))).toBe('other')
  const archived = new StoreError('store-unavailable', 'the store: full', { cause: new Error('full') })
  expect(explain(archived)).toBe('the store: full')
})

test('damage is known by the error, or by what caused it', () => {
  const coded = (code: string) => Object.assign(new Error('malformed'), { code })
  for (const error of [
    new StoreDamagedError('damaged'),
    coded('SQLITE_CORRUPT'),
    coded('SQLITE_CORRUPT_INDEX'),
  ]) {
    expect(isDamage(error)).toBe(true)
    expect(isDamage(new Error('cannot be read', { cause: new Error('why', { cause: error }) }))).toBe(true)
  }
  for (const error of [
    coded('SQLITE_FULL'),
    coded('NOT_SQLITE_CORRUPT'),
    new Error('other'),
    'SQLITE_CORRUPT',
    undefined,
  ])
    expect(isDamage(error)).toBe(false)
})
