import { join } from 'node:path'
import { DomainError } from '@plant-store/domain'
import { openStorage } from '@plant-store/persistence'
import { describe, expect, test } from 'vitest'
import { plant, plantId, temporaryFolder } from './store-folder.ts'

const onFile = () => `file:${join(temporaryFolder(), 'plants.db')}`

/** What became of attempts: what each resolved to, or the code of its error. */
async function outcomes(attempts: readonly Promise<unknown>[]): Promise<unknown[]> {
  const settled = await Promise.allSettled(attempts)
  return settled.map(each => {
    if (each.status === 'fulfilled') return each.value
    if (each.reason instanceof DomainError) return each.reason.code
    throw each.reason
  })
}

describe('changes that come together', () => {
  test('in one call each have their own outcome, in their order, and of single ones beside them one wins', async () => {
    await using storage = await openStorage({ url: onFile(), transactionChangesMax: 7 })
    const { plants } = storage
    const insertAll = (from: number) =>
      plants.insertAll?.(Array.from({ length: 20 }, (_, n) => plant(from + n, `${from}`)))
    const [single, first, second] = await Promise.all([
      plants.insert(plant(5, 'single')),
      insertAll(0),
      insertAll(10),
    ])
    expect([single, first?.[5]].toSorted()).toEqual(['id-taken', 'inserted'])
    expect(first?.toSpliced(5, 1)).toEqual(Array(19).fill('inserted'))
    expect(second).toEqual(Array.from({ length: 20 }, (_, n) => (n < 10 ? 'id-taken' : 'inserted')))
    expect(await plants.insertAll?.([])).toEqual([])
    expect(storage.pending()).toBe(0)
  })

  test('in one call are refused as one past 10,000, with nothing of them done, unless nothing else waits', async () => {
    await using storage = await openStorage({ url: onFile() })
    const insertAll = async (from: number, count: number) => {
      const all = Array.from({ length: count }, (_, n) => plant(from + n))
      return new Set(await storage.plants.insertAll?.(all))
    }
    const attempts = [insertAll(0, 1), insertAll(1, 10_000), insertAll(1, 9_999)]
    const inserted = new Set(['inserted'])
    expect(await outcomes(attempts)).toEqual([inserted, 'store-busy', inserted])
    expect(await insertAll(10_000, 10_001)).toEqual(inserted)
  })

  test('in calls of many have a limit of their own: single ones and they do not refuse each other', async () => {
    await using storage = await openStorage({ url: onFile(), queueChangesMax: 1 })
    const { plants } = storage
    const many = Array.from({ length: 50 }, (_, call) =>
      plants.insertAll?.(Array.from({ length: 150 }, (_, n) => plant(call * 150 + n))),
    )
    expect(await plants.insert(plant(-1))).toBe('inserted')
    expect((await Promise.all(many)).flat()).toEqual(Array(7_500).fill('inserted'))
  })

  test('take effect in the order they came in, of any kind', async () => {
    await using storage = await openStorage({ url: onFile(), transactionChangesMax: 2 })
    const { plants } = storage
    expect(
      await outcomes([
        plants.insert(plant(1, 'a')),
        plants.remove(plantId(1)),
        plants.insert(plant(1, 'b')),
        plants.save(plant(1, 'c')),
        plants.insert(plant(1, 'd')),
        plants.remove(plantId(2)),
      ]),
    ).toEqual(['inserted', true, 'inserted', expect.any(String), 'id-taken', false])
    expect((await plants.find(plantId(1)))?.plant).toEqual(plant(1, 'c'))
  })

  test('are refused past the rows that may wait, with nothing of them done, and taken again later', async () => {
    await using storage = await openStorage({ url: onFile(), queueChangesMax: 3 })
    const ids = [1, 2, 3, 4, 5, 6]
    const insertAll = () => outcomes(ids.map(id => storage.plants.insert(plant(id))))
    expect(await insertAll()).toEqual([...Array(3).fill('inserted'), ...Array(3).fill('store-busy')])
    expect((await storage.plants.page({ limit: 10 })).map(({ id }) => id)).toEqual([1n, 2n, 3n])
    await storage.check()
    const refused = (await Promise.allSettled(ids.map(id => storage.plants.insert(plant(id))))).at(-1)
    expect(refused).toMatchObject({ reason: { message: 'too many changes are pending' } })
    expect(await insertAll()).toEqual([...Array(3).fill('id-taken'), ...Array(3).fill('store-busy')])
    expect(await outcomes([storage.plants.insert(plant(4))])).toEqual(['inserted'])
  })

  test('are refused once the store is closed', async () => {
    const storage = await openStorage({ url: onFile() })
    await storage[Symbol.asyncDispose]()
    await expect(storage.plants.insert(plant(1))).rejects.toThrow(/^the store is closed$/)
  })
})
