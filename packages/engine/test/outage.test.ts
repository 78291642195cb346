import { setImmediate as nextTurn } from 'node:timers/promises'
import { isDamage, messageOf, StoreError } from '@plant-store/engine'
import Database from 'better-sqlite3'
import { describe, expect, test, vi } from 'vitest'
import { StoreDamagedError } from '../src/errors.ts'
import { OutageWatch } from '../src/outage.ts'
import { note, openStorage } from './notes.ts'
import { newFile } from './places.ts'

test('a store that another program locks is reported once', async () => {
  const file = `${newFile()}`
  const reasons: (string | undefined)[] = []
  await using storage = await openStorage({
    url: `file:${file}`,
    lockTimeoutMs: 20,
    onFailureChange: reason => reasons.push(reason),
  })
  const insertOne = (id: number) =>
    storage.notes.insert(note(id)).catch(error => error.code)
  const insert = (ids: number[]) => Promise.all(ids.map(insertOne))
  expect(await insert([1])).toEqual([true])
  expect(reasons).toEqual([])
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const failure = 'another program keeps it locked (SQLITE_BUSY)'

  const other = new Database(file)
  other.exec('begin immediate')
  expect(await insert([2, 3])).toEqual(['store-unavailable', 'store-unavailable'])
  // The writer is not blocked, because nothing was written that a crash could restore.
  await storage.check()
  expect(await insert([5])).toEqual(['store-unavailable'])
  expect(reasons).toEqual([failure])

  other.exec('rollback')
  other.close()
  expect(await insert([2, 3])).toEqual([true, true])
  while (reasons.length < 2) {
    vi.advanceTimersByTime(1_000)
    await nextTurn()
  }
  expect(reasons).toEqual([failure, undefined])
})

test('a read that fails has the reason for operators', async () => {
  const storage = await openStorage({
    url: `file:${newFile()}`,
  })
  await storage[Symbol.asyncDispose]()
  const message = 'the store could not be read'
  const cause = { message: expect.stringContaining('not open') }
  await expect(storage.notes.page(1)).rejects.toMatchObject({
    code: 'store-unavailable',
    message,
    cause,
  })
})

const unavailable = (reason: string) =>
  new StoreError('store-unavailable', 'the store could not write the change', {
    cause: new Error(reason),
  })

/** Watches a store whose checks fail while it has a failure. */
function watchStore() {
  vi.useFakeTimers()
  const reasons: string[] = []
  const store: { failure?: StoreError | undefined } = {}
  const check = vi.fn(async () => {
    if (store.failure) {
      throw store.failure
    }
  })
  const watch = new OutageWatch(check, (reason = 'works') => reasons.push(reason))
  return { watch, reasons, store, check }
}

const busy = new StoreError('store-busy', 'too many')
const gone = new StoreError('store-unavailable', 'it is gone')

test('an error that is no outage is not reported', async () => {
  const { watch, reasons, check } = watchStore()

  watch.report(busy)
  await vi.advanceTimersByTimeAsync(10_000)

  expect(reasons).toEqual([])
  expect(check).not.toHaveBeenCalled()
})

test('an outage is reported with each new reason that lasts', async () => {
  const { watch, reasons, store } = watchStore()

  watch.report(unavailable('the disk is full'))
  watch.report(unavailable('the disk fails'))
  store.failure = unavailable('the disk fails')
  await vi.advanceTimersByTimeAsync(999)
  expect(reasons, 'before the first check').toEqual(['the disk is full'])

  await vi.advanceTimersByTimeAsync(1)
  expect(reasons, 'after it').toEqual(['the disk is full', 'the disk fails'])

  store.failure = gone
  await vi.advanceTimersByTimeAsync(2_000)
  expect(reasons.at(-1)).toBe('it is gone')
})

test('an outage ends after a second without a failure', async () => {
  const { watch, reasons, store, check } = watchStore()
  watch.report(gone)
  store.failure = busy
  await vi.advanceTimersByTimeAsync(1_000)
  store.failure = undefined
  watch.report(unavailable('a last time'))
  await vi.advanceTimersByTimeAsync(1_000)
  expect(reasons, 'a second with a failure').toEqual(['it is gone'])

  await vi.advanceTimersByTimeAsync(1_000)

  expect(reasons).toEqual(['it is gone', 'works'])
  check.mockClear()
  await vi.advanceTimersByTimeAsync(10_000)
  expect(check).not.toHaveBeenCalled()
  watch.report(gone)
  expect(reasons, 'another outage').toEqual(['it is gone', 'works', 'it is gone'])
})

test('nothing is reported once the watch has ended', async () => {
  const { watch, reasons, store, check } = watchStore()
  watch.report(unavailable('the disk is full'))
  store.failure = unavailable('the disk fails')
  // A check is under way.
  vi.advanceTimersByTime(1_000)

  watch.end()
  watch.report(unavailable('the disk fails'))
  await vi.advanceTimersByTimeAsync(10_000)

  expect(reasons).toEqual(['the disk is full'])
  expect(check).toHaveBeenCalledOnce()
})

describe('an error in words is', () => {
  const ofAddress = (address: string) => new Error(`connect ECONNREFUSED ${address}:80`)
  const named = new Error('')
  named.name = 'TypeError'

  test.each<[string, unknown, string]>([
    ['its message', new Error('why', { cause: new Error('a cause') }), 'why'],
    [
      'its message with the reason that the ports keep from clients',
      unavailable('the disk is full'),
      'the store could not write the change: the disk is full',
    ],
    [
      'its message alone if it has the reason',
      new StoreError('store-unavailable', 'the store: full', {
        cause: new Error('full'),
      }),
      'the store: full',
    ],
    [
      'the messages of all addresses of a name',
      new AggregateError([ofAddress('::1'), ofAddress('127.0.0.1')]),
      'connect ECONNREFUSED ::1:80; connect ECONNREFUSED 127.0.0.1:80',
    ],
    [
      'one message if all attempts failed alike',
      new AggregateError([new Error('why'), new Error('why')]),
      'why',
    ],
    [
      'its own message before those of attempts',
      new AggregateError([named], 'why'),
      'why',
    ],
    [
      'the message of an attempt within another',
      new AggregateError([new AggregateError([new Error('why')])]),
      'why',
    ],
    ['its code without a message', Object.assign(new Error(''), { code: 'EIO' }), 'EIO'],
    ['the message of its cause', new Error('', { cause: new Error('why') }), 'why'],
    ['its name if there is nothing else', named, 'TypeError'],
    ['the name of an empty list of attempts', new AggregateError([]), 'AggregateError'],
    ['the value that was thrown', 'why', 'why'],
  ])('%s', (_, error, words) => {
    expect(messageOf(error)).toBe(words)
  })
})

const codedError = (code: string) => Object.assign(new Error('malformed'), { code })

test.each([
  { error: new StoreDamagedError('damaged'), expected: true },
  { error: codedError('SQLITE_CORRUPT_INDEX'), expected: true },
  { error: codedError('SQLITE_FULL'), expected: false },
  { error: codedError('NOT_SQLITE_CORRUPT'), expected: false },
  { error: 'SQLITE_CORRUPT', expected: false },
])('that $error is damage is $expected, also as a cause', ({ error, expected }) => {
  const why = new Error('why', { cause: error })

  expect(isDamage(error)).toBe(expected)
  expect(isDamage(new Error('cannot be read', { cause: why }))).toBe(expected)
})
