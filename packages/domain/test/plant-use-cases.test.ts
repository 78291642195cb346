import {
  createPlantUseCases,
  DomainError,
  type Plant,
  type PlantCount,
  type PlantRepository,
  pageLimitDefault,
  pageLimitMax,
  parsePlantId,
  parsePlantPageQuery,
  totalMax,
  type UnicodeText,
} from '@plant-store/domain'
import {
  createMemoryPlantRepository,
  memoryUseCases,
  plant,
} from '@plant-store/domain/testing'
import { describe, expect, test } from 'vitest'

const id = parsePlantId
const open = () => memoryUseCases().plants

describe('the use cases', () => {
  test('creating a taken id is refused, and the plant that has it stays', async () => {
    const store = open()
    await store.create(plant(1n, 'first'))
    for (const again of [plant(1n, 'first'), plant(1n, 'second', 'tag')]) {
      const refused = { code: 'id-taken', message: 'id 1 is already taken', faults: [] }
      await expect(store.create(again)).rejects.toMatchObject(refused)
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
    const missing = new DomainError('plant-not-found', 'there is no plant with id 1')
    await expect(store.find(id(1n))).rejects.toEqual(missing)
    await expect(store.remove(id(1n))).rejects.toEqual(missing)
  })

  test('what the repository fails with comes through as it is', async () => {
    const busy = new DomainError('store-busy', 'too much')
    const fail = () => Promise.reject(busy)
    const methods = Object.keys(createMemoryPlantRepository()).map(name => [name, fail])
    const store = createPlantUseCases({
      plants: Object.fromEntries(methods) as PlantRepository,
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

/** A store, and the changes of many that its repository is asked for, with the ids. */
function openRecorded() {
  const plants = createMemoryPlantRepository()
  const asked: string[] = []
  const noted = (kind: string, all: readonly Plant[]) => {
    asked.push(`${kind} ${all.map(each => each.id)}`)
    return all
  }
  const store = createPlantUseCases({
    plants: {
      ...plants,
      insertAll: all => plants.insertAll(noted('insertAll', all)),
      saveAll: all => plants.saveAll(noted('saveAll', all)),
    },
  })
  return { store, asked }
}

describe('creating many', () => {
  test('says of each plant what became of it, in their order', async () => {
    const store = open()
    await store.create(plant(2n, 'known', 't'))
    const all = [
      plant(1n),
      plant(2n, 'known', 't'),
      plant(2n, 'known'),
      plant(1n),
      plant(1n, 'other'),
    ]
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
      for (const { id } of all) {
        await plants.remove(id)
      }
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
      plants: {
        ...createMemoryPlantRepository(),
        insert,
        insertAll: async () => ['id-taken'],
      },
    })
    await expect(endless.createAll([plant(1n)])).rejects.toMatchObject({
      code: 'store-busy',
    })
    expect(asked).toBe(100)
  })

  test('asks for all of them at once, so that they can share a transaction', async () => {
    const { store, asked } = openRecorded()
    await store.createAll([plant(1n), plant(2n)])
    expect(asked).toEqual(['insertAll 1,2'])
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
    expect(await store.replaceAll(all)).toEqual([
      'inserted',
      'replaced',
      'replaced',
      'replaced',
    ])
    expect((await store.list({ limit: 10 })).plants).toEqual([
      plant(1n, 'last'),
      plant(2n, 'newest', 't'),
    ])
    expect(await store.replaceAll([])).toEqual([])
  })

  test('saves only those that were there', async () => {
    const { store, asked } = openRecorded()
    await store.replaceAll([plant(1n), plant(2n)])
    await store.replaceAll([plant(1n), plant(3n), plant(2n)])
    expect(asked).toEqual(['insertAll 1,2', 'insertAll 1,3,2', 'saveAll 1,2'])
  })
})

describe('listing', () => {
  /** Returns the ids of page after page of a tag. */
  const pagesOf = async (
    textLengths: readonly number[],
    limit: number,
    textBytesMax: number,
  ) => {
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

  const noBound = Number.POSITIVE_INFINITY
  test.each([
    ['no plants are a page', [], 3, noBound, [[]]],
    ['a full page may be the last', [1, 1, 1], 3, noBound, [[0, 2, 4]]],
    ['one more is another page', [1, 1, 1, 1], 3, noBound, [[0, 2, 4], [6]]],
    ['a plant may be a page', [1, 1], 1, noBound, [[0], [2]]],
    ['long texts end a page early', [99, 99, 99, 99, 99], 9, 400, [[0, 2, 4, 6], [8]]],
    ['a plant that is longer is a page', [500, 500], 9, 400, [[0], [2], []]],
    ['the limit may end it before its texts', [99, 99, 99], 2, 300, [[0, 2], [4]]],
    ['both may end it', [99, 99, 99, 99], 3, 300, [[0, 2, 4], [6]]],
  ])('goes from page to page: %s', async (_, textLengths, limit, textBytesMax, pages) => {
    expect(await pagesOf(textLengths, limit, textBytesMax)).toEqual(pages)
  })

  test('counts the whole list, exactly up to a bound', async () => {
    const store = open()
    const all = [plant(1n), plant(2n), plant(3n)]
    await store.createAll(all)
    expect(await store.list(parsePlantPageQuery({ count: false }))).toStrictEqual({
      plants: all,
    })
    const first = await store.list(parsePlantPageQuery({ limit: 2, count: true }))
    expect(first).toEqual({ plants: all.slice(0, 2), next: 2n, total: 3 })
    for (const [counted, total] of [
      [totalMax, totalMax],
      [totalMax + 1, '10000+'],
    ] as const) {
      const plants = {
        ...createMemoryPlantRepository(),
        pageCounted: async ({ countMax }: PlantCount) => ({
          plants: [],
          total: Math.min(countMax, counted),
        }),
      }
      expect(
        await createPlantUseCases({ plants }).list({ limit: 1, count: true }),
      ).toEqual({
        plants: [],
        total,
      })
    }
  })

  test('asks for one plant more than a page has, and looks at fewer of a tag, which are far apart', async () => {
    const asked: number[] = []
    const plants: PlantRepository = {
      ...createMemoryPlantRepository(),
      async page({ limit }) {
        asked.push(limit)
        return []
      },
      async search({ lookAtMax }) {
        asked.push(lookAtMax)
        return { plants: [], next: id(7n) }
      },
    }
    const store = createPlantUseCases({ plants })
    for (const limit of [1, pageLimitDefault, pageLimitMax]) {
      await store.list(parsePlantPageQuery({ limit }))
    }
    for (const tag of [undefined, 't']) {
      const page = await store.list(parsePlantPageQuery({ name_contains: 'n', tag }))
      expect(page).toEqual({ plants: [], next: 7n })
    }
    expect(asked).toEqual([2, 101, 1_001, 4_000, 1_000])
  })
})
