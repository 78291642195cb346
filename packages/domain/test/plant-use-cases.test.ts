import {
  type CreateOutcome,
  createPlantUseCases,
  DomainError,
  type PlantCount,
  type PlantRepository,
  parsePlantId,
  parsePlantListQuery,
  totalMax,
} from '@plant-store/domain'
import {
  createMemoryPlantRepository,
  longPlant,
  plant,
} from '@plant-store/domain/testing'
import { describe, expect, test, vi } from 'vitest'

const id = parsePlantId

function openStore() {
  return createPlantUseCases({ plants: createAdapter() })
}

/** Returns a repository whose methods need their `this`, as those of a class may. */
function createAdapter(): PlantRepository {
  const adapter: Record<string, unknown> = {}
  for (const [name, method] of Object.entries(createMemoryPlantRepository())) {
    adapter[name] = function (this: unknown, ...input: never[]) {
      expect(this, `the this of ${name}`).toBe(adapter)
      return Reflect.apply(method, undefined, input)
    }
  }
  // It has every method of the one in memory.
  return adapter as unknown as PlantRepository
}

describe('one plant', () => {
  test('is not created under a taken id', async () => {
    const store = openStore()
    await store.create(plant(1n, 'first'))

    const creating = store.create(plant(1n, 'second', 'tag'))

    const message = 'id 1 is already taken'
    const taken = { code: 'id-taken', message, faults: [] }
    await expect(creating).rejects.toMatchObject(taken)
    const { plant: stored } = await store.find(id(1n))
    expect(stored).toEqual(plant(1n, 'first'))
  })

  test('is replaced without a condition, or made', async () => {
    const store = openStore()
    await store.replace(plant(1n, 'first'))

    const { created } = await store.replace(plant(1n, 'second'))

    expect(created).toBe(false)
    const { plant: stored } = await store.find(id(1n))
    expect(stored).toEqual(plant(1n, 'second'))
  })

  test('is neither found nor removed once it was removed', async () => {
    const store = openStore()
    await store.create(plant(1n))
    await store.remove(id(1n))

    const missing = new DomainError('plant-not-found', 'there is no plant with id 1')
    await expect(store.find(id(1n))).rejects.toEqual(missing)
    await expect(store.remove(id(1n))).rejects.toEqual(missing)
  })
})

describe('creating many', () => {
  test('tells the outcome of each plant, in their order', async () => {
    const store = openStore()
    await store.create(plant(2n, 'known', 't'))

    const outcomes = await store.createAll([
      plant(1n),
      plant(2n, 'known', 't'),
      plant(2n, 'known'),
      plant(1n),
      plant(1n, 'other'),
    ])

    const expected: CreateOutcome[] = [
      'inserted',
      'existing',
      'id-taken',
      'existing',
      'id-taken',
    ]
    expect(outcomes).toEqual(expected)
    const { plants } = await store.list({ limit: 10 })
    expect(plants).toEqual([plant(1n), plant(2n, 'known', 't')])
    expect(await store.createAll([])).toEqual([])
  })

  test('creates a plant whose rival was removed before a comparison', async () => {
    const plants = createMemoryPlantRepository()
    await plants.insert(plant(1n, 'rival'))
    const insertAll: PlantRepository['insertAll'] = async all => {
      const outcomes = await plants.insertAll(all)
      await plants.remove(id(1n))
      return outcomes
    }
    const store = createPlantUseCases({ plants: { ...plants, insertAll } })

    const outcomes = await store.createAll([plant(1n)])

    expect(outcomes).toEqual(['inserted'])
    expect(await store.find(id(1n))).toMatchObject({ plant: plant(1n) })
  })

  test('gives up after a hundred rivals of one plant', async () => {
    let inserts = 0
    const store = createPlantUseCases({
      plants: {
        ...createMemoryPlantRepository(),
        insertAll: async () => ['id-taken'],
        async insert() {
          inserts++
          return 'id-taken'
        },
      },
    })

    const creating = store.createAll([plant(1n)])

    await expect(creating).rejects.toMatchObject({ code: 'store-busy' })
    expect(inserts).toBe(100)
  })

  test('compares at most a thousand plants at the same time', async () => {
    const plants = createMemoryPlantRepository()
    const ids = Array.from({ length: 1_500 }, (_, index) => BigInt(index))
    const all = ids.map(id => plant(id))
    await plants.insertAll(all)
    let comparing = 0
    let most = 0
    const store = createPlantUseCases({
      plants: {
        ...plants,
        async find(each) {
          comparing++
          most = Math.max(most, comparing)
          await new Promise(setImmediate)
          comparing--
          return plants.find(each)
        },
      },
    })

    const outcomes = await store.createAll(all)

    expect(outcomes).toEqual(all.map(() => 'existing'))
    expect(most).toBe(1_000)
  })
})

test.each([
  ['createAll', 'insertAll'],
  ['replaceAll', 'saveAll'],
] as const)('%s makes one call of %s, and passes its failure on', async (...names) => {
  const [useCase, method] = names
  const plants = createMemoryPlantRepository()
  const failure = new DomainError('store-unavailable', 'on purpose')
  const call = vi.spyOn(plants, method).mockRejectedValue(failure)
  const store = createPlantUseCases({ plants })

  await expect(store[useCase]([plant(1n), plant(2n)])).rejects.toBe(failure)
  expect(call).toHaveBeenCalledOnce()
})

describe('replacing many', () => {
  test('tells which were there, and the last one wins', async () => {
    const store = openStore()
    await store.create(plant(2n, 'known', 't'))

    const outcomes = await store.replaceAll([
      plant(1n),
      plant(2n, 'new'),
      plant(1n, 'last'),
      plant(2n, 'newest', 't'),
    ])

    expect(outcomes).toEqual(['inserted', 'replaced', 'replaced', 'replaced'])
    const { plants } = await store.list({ limit: 10 })
    expect(plants).toEqual([plant(1n, 'last'), plant(2n, 'newest', 't')])
    expect(await store.replaceAll([])).toEqual([])
  })
})

const unlimited = Number.POSITIVE_INFINITY

describe('listing goes from page to page:', () => {
  /** Returns the ids of page after page of plants whose texts have this many bytes. */
  async function pagesOf({ bytes, limit, textBytesMax = unlimited }: Row) {
    const store = openStore()
    for (const [index, length] of bytes.entries()) {
      const tagLength = length - 'long'.length
      await store.create(longPlant(BigInt(index), tagLength))
    }

    const pages: number[][] = []
    let after: bigint | undefined
    do {
      const query = parsePlantListQuery({ limit, after })
      const { plants, next } = await store.list({ ...query, textBytesMax })
      pages.push(plants.map(each => Number(each.id)))
      after = next
    } while (after !== undefined)
    return pages
  }

  interface Row {
    readonly what: string
    readonly bytes: readonly number[]
    readonly limit: number
    readonly textBytesMax?: number
    readonly pages: readonly number[][]
  }

  test.each<Row>([
    { what: 'no plants are a page', bytes: [], limit: 3, pages: [[]] },
    { what: 'a full page may be last', bytes: [9, 9, 9], limit: 3, pages: [[0, 1, 2]] },
    { what: 'one more is a page', bytes: [9, 9, 9], limit: 2, pages: [[0, 1], [2]] },
    {
      what: 'long texts end a page early',
      bytes: [99, 99, 99, 99, 99],
      limit: 9,
      textBytesMax: 300,
      pages: [[0, 1, 2, 3], [4]],
    },
    {
      what: 'a plant that is longer is a page',
      bytes: [500, 500],
      limit: 9,
      textBytesMax: 400,
      pages: [[0], [1], []],
    },
  ])('$what', async row => {
    expect(await pagesOf(row)).toEqual(row.pages)
  })
})

describe('counting', () => {
  test('tells the size of the whole list beside each page', async () => {
    const store = openStore()
    const all = [plant(1n), plant(2n), plant(3n)]
    await store.createAll(all)

    const first = await store.list(parsePlantListQuery({ limit: 2, count: true }))

    expect(first).toEqual({ plants: all.slice(0, 2), next: 2n, total: 3 })
  })

  test('is left out unless the query asks for it', async () => {
    const store = openStore()
    await store.create(plant(1n))

    const page = await store.list(parsePlantListQuery({ count: false }))

    expect(page).toStrictEqual({ plants: [plant(1n)] })
  })

  test.each([
    { stored: totalMax, total: totalMax },
    { stored: totalMax + 1, total: '10000+' },
  ])('tells $total of $stored plants', async ({ stored, total }) => {
    const plants: PlantRepository = {
      ...createMemoryPlantRepository(),
      pageCounted: async ({ countMax }: PlantCount) => ({
        plants: [],
        total: Math.min(countMax, stored),
      }),
    }

    const page = await createPlantUseCases({ plants }).list({ limit: 1, count: true })

    expect(page).toEqual({ plants: [], total })
  })
})

test.each([
  { what: 'all plants', tag: undefined, lookAtMax: 4_000 },
  // Plants of a tag are far apart on the disk.
  { what: 'a tag', tag: 't', lookAtMax: 1_000 },
])('a search in $what looks at $lookAtMax plants', async ({ tag, lookAtMax }) => {
  const plants = createMemoryPlantRepository()
  const result = { plants: [], next: id(7n) }
  const search = vi.spyOn(plants, 'search').mockResolvedValue(result)
  const query = parsePlantListQuery({ name_contains: 'n', tag })

  const page = await createPlantUseCases({ plants }).list(query)

  expect(page).toEqual(result)
  expect(search).toHaveBeenCalledWith(expect.objectContaining({ lookAtMax }))
})
