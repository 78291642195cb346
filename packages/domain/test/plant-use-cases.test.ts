import {
  createPlantUseCases,
  DomainError,
  type Plant,
  type PlantCount,
  type PlantRepository,
  pageLimitDefault,
  pageLimitMax,
  parsePlant,
  parsePlantId,
  parsePlantPageQuery,
  totalMax,
  type UnicodeText,
} from '@plant-store/domain'
import { createMemoryPlantRepository, memoryUseCases } from '@plant-store/domain/testing'
import { describe, expect, test } from 'vitest'

const plant = (id: bigint, name = `plant ${id}`, tag?: string) => parsePlant({ id, name, tag })
const id = parsePlantId
const open = () => memoryUseCases().plants

describe('the use cases', () => {
  test('creating a taken id is refused, and the plant that has it stays', async () => {
    const store = open()
    await store.create(plant(1n, 'first'))
    for (const again of [plant(1n, 'first'), plant(1n, 'second', 'tag')]) {
      await expect(store.create(again)).rejects.toMatchObject({
        code: 'id-taken',
        message: 'id 1 is already taken',
        faults: [],
      })
    }
    expect((await store.find(id(1n))).plant).toEqual(plant(1n, 'first'))
  })

  test('replacing creates or replaces, wholly', async () => {
    const store = open()
    await store.replace(plant(1n, 'a', 'x'))
    await store.replace(plant(1n, 'b'))
    await store.replace(plant(1n, 'b'))
    expect((await store.find(id(1n))).plant).toEqual(plant(1n, 'b'))
    expect((await store.list(parsePlantPageQuery({}))).plants.length).toBe(1)
  })

  test('what is not there is neither found nor removed', async () => {
    const store = open()
    await store.create(plant(1n))
    await store.remove(id(1n))
    for (const attempt of [store.find(id(1n)), store.remove(id(1n))]) {
      await expect(attempt).rejects.toBeInstanceOf(DomainError)
      await expect(attempt).rejects.toMatchObject({
        code: 'plant-not-found',
        message: 'there is no plant with id 1',
      })
    }
  })

  test('what the repository fails with comes through as it is', async () => {
    const busy = new DomainError('store-busy', 'too much')
    const fail = () => Promise.reject(busy)
    const store = createPlantUseCases({
      plants: {
        insert: fail,
        insertAll: fail,
        find: fail,
        page: fail,
        pageCounted: fail,
        search: fail,
        save: fail,
        saveAll: fail,
        saveIf: fail,
        remove: fail,
        removeIf: fail,
      },
    })
    const outcomes = await Promise.allSettled([
      store.create(plant(1n)),
      store.createAll([plant(1n), plant(2n)]),
      store.replaceAll([plant(1n), plant(2n)]),
      store.find(id(1n)),
      ...[{}, { count: true }, { name_contains: 'n' as UnicodeText }].map(more =>
        store.list({ limit: 1, ...more }),
      ),
      store.replace(plant(1n)),
      store.remove(id(1n)),
    ])
    expect(outcomes).toEqual(outcomes.map(() => ({ status: 'rejected', reason: busy })))
  })
})

/** A store of two repositories for the same plants, and the changes that each is asked for, as `[whose, kind, ids]`. */
function openRecorded(wrong: Partial<PlantRepository> = {}) {
  const plants = { ...createMemoryPlantRepository(), ...wrong }
  const asked: unknown[] = []
  const recorded = (whose: string): PlantRepository => {
    const record = (kind: string, all: readonly Plant[]) =>
      asked.push([whose, kind, ...all.map(each => Number(each.id))])
    return {
      ...plants,
      insert(each) {
        record('insert', [each])
        return plants.insert(each)
      },
      insertAll(all) {
        record('insertAll', all)
        return plants.insertAll(all)
      },
      saveAll(all) {
        record('saveAll', all)
        return plants.saveAll(all)
      },
    }
  }
  const store = createPlantUseCases({ plants: recorded('plants'), unannounced: recorded('unannounced') })
  return { store, asked }
}

describe('creating many', () => {
  test('says of each plant what became of it, in their order', async () => {
    const store = open()
    await store.create(plant(2n, 'known', 't'))
    const all = [plant(1n), plant(2n, 'known', 't'), plant(2n, 'known'), plant(1n), plant(1n, 'other')]
    const outcomes = ['inserted', 'existing', 'id-taken', 'existing', 'id-taken']
    expect(await store.createAll(all)).toEqual(outcomes)
    expect(await store.find(id(1n))).toMatchObject({ plant: plant(1n) })
    expect(await store.find(id(2n))).toMatchObject({ plant: plant(2n, 'known', 't') })
    expect(await store.createAll([])).toEqual([])
  })

  test('a plant that is removed before it can be compared makes room, but not without end', async () => {
    const plants = createMemoryPlantRepository()
    await plants.insert(plant(1n, 'other'))
    const insertAll: PlantRepository['insertAll'] = async all => {
      const outcomes = await plants.insertAll(all)
      for (const { id } of all) await plants.remove(id)
      return outcomes
    }
    const store = createPlantUseCases({ plants: { ...plants, insertAll } })
    expect(await store.createAll([plant(1n)])).toEqual(['inserted'])
    expect(await store.find(id(1n))).toMatchObject({ plant: plant(1n) })

    let asked = 0
    const insert = async () => {
      asked++
      return 'id-taken' as const
    }
    const endless = createPlantUseCases({
      plants: { ...createMemoryPlantRepository(), insert, insertAll: async () => ['id-taken'] },
    })
    await expect(endless.createAll([plant(1n)])).rejects.toMatchObject({ code: 'store-busy' })
    expect(asked).toBe(100)
  })

  test('goes to the repository that announces, or to the other one, also where a plant makes room', async () => {
    const taken: PlantRepository['insertAll'] = async all => all.map(() => 'id-taken')
    const { store, asked } = openRecorded({ insertAll: taken })
    await store.createAll([plant(1n)], { announce: false })
    await store.createAll([plant(2n)], { announce: true })
    await store.createAll([plant(3n)])
    expect(asked).toEqual([
      ['unannounced', 'insertAll', 1],
      ['unannounced', 'insert', 1],
      ['plants', 'insertAll', 2],
      ['plants', 'insert', 2],
      ['plants', 'insertAll', 3],
      ['plants', 'insert', 3],
    ])
  })

  test('asks for all of them at once, so that they can share a transaction', async () => {
    const { store, asked } = openRecorded()
    const all = [plant(0n), plant(1n), plant(2n)]
    await store.createAll(all)
    expect(asked).toEqual([['plants', 'insertAll', ...all.keys()]])
  })

  test('compares at most a thousand at the same time', async () => {
    const plants = createMemoryPlantRepository()
    const all = Array.from({ length: 2_500 }, (_, n) => plant(BigInt(n)))
    await plants.insertAll(all)
    let comparing = 0
    let most = 0
    const store = createPlantUseCases({
      plants: {
        ...plants,
        async find(id) {
          most = Math.max(most, ++comparing)
          await new Promise(setImmediate)
          comparing--
          return plants.find(id)
        },
      },
    })
    expect(await store.createAll(all)).toEqual(all.map(() => 'existing'))
    expect(most).toBe(1_000)
  })
})

describe('replacing many', () => {
  test('reports which were there, and the last one wins', async () => {
    const store = open()
    await store.create(plant(2n, 'known', 't'))
    const all = [plant(1n), plant(2n, 'new'), plant(1n, 'last'), plant(2n, 'newest', 't')]
    expect(await store.replaceAll(all)).toEqual(['inserted', 'replaced', 'replaced', 'replaced'])
    expect((await store.list({ limit: 10 })).plants).toEqual([plant(1n, 'last'), plant(2n, 'newest', 't')])
    expect(await store.replaceAll([])).toEqual([])
  })

  test('goes to the repository that announces, or to the other one, and saves only those that were there', async () => {
    const { store, asked } = openRecorded()
    await store.replaceAll([plant(1n), plant(2n)])
    await store.replaceAll([plant(1n), plant(3n), plant(2n)], { announce: false })
    await store.replaceAll([plant(3n)], { announce: true })
    expect(asked).toEqual([
      ['plants', 'insertAll', 1, 2],
      ['unannounced', 'insertAll', 1, 3, 2],
      ['unannounced', 'saveAll', 1, 2],
      ['plants', 'insertAll', 3],
      ['plants', 'saveAll', 3],
    ])
  })
})

test('a store of one repository adds there, whether or not plants are to be announced', async () => {
  const store = open()
  expect(await store.createAll([plant(1n)], { announce: false })).toEqual(['inserted'])
  expect(await store.replaceAll([plant(1n, 'new')], { announce: false })).toEqual(['replaced'])
  expect((await store.list({ limit: 10 })).plants).toEqual([plant(1n, 'new')])
})

describe('listing', () => {
  const filled = async (count: number) => {
    const store = open()
    for (let n = count; n > 0; n--)
      await store.create(plant(BigInt(n) * 10n, 'p', n % 2 === 0 ? 'even' : 'odd'))
    return store
  }

  test.each([
    [0, 3],
    [2, 3],
    [3, 3],
    [4, 3],
    [5, 1],
  ])('of %i plants, %i a page, names each once in order and says when it is over', async (count, limit) => {
    const store = await filled(count)
    const seen: bigint[] = []
    let pages = 0
    for (let after: bigint | undefined; ; ) {
      const page = await store.list(parsePlantPageQuery({ limit, after }))
      pages++
      expect(page.plants.length).toBeLessThanOrEqual(limit)
      seen.push(...page.plants.map(each => each.id))
      if (page.next === undefined) {
        expect(Object.hasOwn(page, 'next')).toBe(false)
        break
      }
      expect(page.plants.length).toBe(limit)
      expect(page.next).toBe(page.plants.at(-1)?.id)
      after = page.next
    }
    expect(seen).toEqual(Array.from({ length: count }, (_, n) => BigInt(n + 1) * 10n))
    expect(pages).toBe(Math.max(1, Math.ceil(count / limit)))
  })

  /** Returns the ids of page after page of a tag. */
  const pagesOf = async (textLengths: readonly number[], limit: number, textBytesMax: number) => {
    const store = open()
    for (const [n, length] of textLengths.entries()) {
      await store.create(plant(BigInt(2 * n), 'x'.repeat(length), 't'))
      await store.create(plant(BigInt(2 * n + 1), 'x'.repeat(length), 'other'))
    }
    const pages: number[][] = []
    let after: bigint | undefined
    do {
      const query = { ...parsePlantPageQuery({ limit, after, tag: 't' }), textBytesMax }
      const { plants, next } = await store.list(query)
      pages.push(plants.map(each => Number(each.id)))
      after = next
    } while (after !== undefined)
    return pages
  }

  test.each([
    ['the next one goes on behind it', [99, 99, 99, 99, 99], 9, 400, [[0, 2, 4, 6], [8]]],
    ['a longer plant is a page', [500, 500], 9, 400, [[0], [2], []]],
    ['the limit may end it before', [99, 99, 99], 2, 300, [[0, 2], [4]]],
    ['both may end it', [99, 99, 99, 99], 3, 300, [[0, 2, 4], [6]]],
  ])('a page of long texts ends early: %s', async (_, textLengths, limit, textBytesMax, pages) => {
    expect(await pagesOf(textLengths, limit, textBytesMax)).toEqual(pages)
  })

  test('counts the whole list, exactly up to a bound', async () => {
    const store = await filled(3)
    expect(await store.list(parsePlantPageQuery({ count: false }))).not.toHaveProperty('total')
    const first = await store.list(parsePlantPageQuery({ limit: 2, count: true }))
    expect(first).toEqual({ plants: [plant(10n, 'p', 'odd'), plant(20n, 'p', 'even')], next: 20n, total: 3 })
    for (const [counted, total] of [
      [totalMax, totalMax],
      [totalMax + 1, '10000+'],
    ] as const) {
      const plants = {
        ...createMemoryPlantRepository(),
        pageCounted: async ({ countMax }: PlantCount) => ({ plants: [], total: Math.min(countMax, counted) }),
      }
      expect(await createPlantUseCases({ plants }).list({ limit: 1, count: true })).toEqual({
        plants: [],
        total,
      })
    }
  })

  test('searches a bounded number of plants, and goes on from there', async () => {
    const store = open()
    await store.createAll(
      Array.from({ length: 4_001 }, (_, n) => plant(BigInt(n), n === 4_000 ? 'Found' : 'n')),
    )
    const first = await store.list(parsePlantPageQuery({ name_contains: 'found' }))
    expect(first).toEqual({ plants: [], next: 3_999n })
    const last = await store.list(parsePlantPageQuery({ name_contains: 'found', after: first.next }))
    expect(last).toEqual({ plants: [plant(4_000n, 'Found')] })
  })

  test('searches fewer plants of a tag, which are far apart on the disk', async () => {
    const store = open()
    await store.createAll(Array.from({ length: 1_001 }, (_, n) => plant(BigInt(n), 'n', 'tree')))
    const page = await store.list(parsePlantPageQuery({ name_contains: 'found', tag: 'tree' }))
    expect(page).toEqual({ plants: [], next: 999n })
  })

  test('reads at most one plant more than it was asked for', async () => {
    const asked: number[] = []
    const plants: PlantRepository = {
      ...createMemoryPlantRepository(),
      async page(query) {
        asked.push(query.limit)
        return []
      },
    }
    for (const limit of [1, pageLimitDefault, pageLimitMax])
      await createPlantUseCases({ plants }).list(parsePlantPageQuery({ limit }))
    expect(asked).toEqual([2, 101, 1_001])
  })
})
