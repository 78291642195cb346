import { join } from 'node:path'
import { StoreError } from '@plant-store/engine'
import { temporaryFolder } from '@plant-store/harness/vitest'
import { describe, expect, test } from 'vitest'
import { note, openStorage } from './notes.ts'

const onFile = () => `file:${join(temporaryFolder(), 'notes.db')}`

/** What became of attempts: what each resolved to, or the code of its error. */
async function outcomes(attempts: readonly Promise<unknown>[]): Promise<unknown[]> {
  const settled = await Promise.allSettled(attempts)
  return settled.map(each => {
    if (each.status === 'fulfilled') return each.value
    if (each.reason instanceof StoreError) return each.reason.code
    throw each.reason
  })
}

describe('changes that come together', () => {
  test('in one call each have their own outcome, in their order, and of single ones beside them one wins', async () => {
    await using storage = await openStorage({ url: onFile(), groupChangesMax: 7 })
    const { notes } = storage
    const insertAll = (from: number) =>
      notes.insertAll(Array.from({ length: 20 }, (_, n) => note(from + n, `${from}`)))
    const [single, first, second] = await Promise.all([
      notes.insert(note(5, 'single')),
      insertAll(0),
      insertAll(10),
    ])
    expect([single, first?.[5]].toSorted()).toEqual([false, true])
    expect(first?.toSpliced(5, 1)).toEqual(Array(19).fill(true))
    expect(second).toEqual(Array.from({ length: 20 }, (_, n) => n >= 10))
    expect(await notes.insertAll([])).toEqual([])
    expect(storage.pending()).toBe(0)
  })

  test('in one call are refused as one past 10,000, with nothing of them done, unless nothing else waits', async () => {
    await using storage = await openStorage({ url: onFile() })
    const insertAll = async (from: number, count: number) => {
      const all = Array.from({ length: count }, (_, n) => note(from + n))
      return new Set(await storage.notes.insertAll(all))
    }
    const attempts = [insertAll(0, 1), insertAll(1, 10_000), insertAll(1, 9_999)]
    const inserted = new Set([true])
    expect(await outcomes(attempts)).toEqual([inserted, 'store-busy', inserted])
    expect(await insertAll(10_000, 10_001)).toEqual(inserted)
  })

  test('in calls of many have a limit of their own: single ones and they do not refuse each other', async () => {
    await using storage = await openStorage({ url: onFile(), queueChangesMax: 1 })
    const { notes } = storage
    const many = Array.from({ length: 50 }, (_, call) =>
      notes.insertAll(Array.from({ length: 150 }, (_, n) => note(call * 150 + n))),
    )
    expect(await notes.insert(note(-1))).toBe(true)
    expect((await Promise.all(many)).flat()).toEqual(Array(7_500).fill(true))
  })

  test('take effect in the order they came in, of any kind', async () => {
    await using storage = await openStorage({ url: onFile(), groupChangesMax: 2 })
    const { notes } = storage
    expect(
      await outcomes([
        notes.insert(note(1, 'a')),
        notes.remove(1n),
        notes.insert(note(1, 'b')),
        notes.save(note(1, 'c')),
        notes.insert(note(1, 'd')),
        notes.remove(2n),
      ]),
    ).toEqual([true, true, true, undefined, false, false])
    expect(await notes.find(1n)).toEqual(note(1, 'c'))
  })

  test('are refused past the rows that may wait, with nothing of them done, and taken again later', async () => {
    await using storage = await openStorage({ url: onFile(), queueChangesMax: 3 })
    const ids = [1, 2, 3, 4, 5, 6]
    const insertAll = () => outcomes(ids.map(id => storage.notes.insert(note(id))))
    expect(await insertAll()).toEqual([...Array(3).fill(true), ...Array(3).fill('store-busy')])
    expect((await storage.notes.page(10)).map(({ id }) => id)).toEqual([1n, 2n, 3n])
    await storage.check()
    const refused = (await Promise.allSettled(ids.map(id => storage.notes.insert(note(id))))).at(-1)
    expect(refused).toMatchObject({ reason: { message: 'too many changes are pending' } })
    expect(await insertAll()).toEqual([...Array(3).fill(false), ...Array(3).fill('store-busy')])
    expect(await outcomes([storage.notes.insert(note(4))])).toEqual([true])
  })

  test('are refused once the store is closed', async () => {
    const storage = await openStorage({ url: onFile() })
    await storage[Symbol.asyncDispose]()
    await expect(storage.notes.insert(note(1))).rejects.toThrow(/^the store is closed$/)
  })
})
