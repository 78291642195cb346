import {
  createPlantStore,
  DomainError,
  type PlantRepository,
  pageLimitDefault,
  pageLimitMax,
  parsePlant,
  parsePlantId,
  parsePlantPageQuery,
  plantIdMax,
  plantIdMin,
} from '@plant-store/domain'
import { createMemoryPlantRepository } from '@plant-store/domain/testing'
import { describe, expect, test } from 'vitest'

const plant = (id: bigint, name = `plant ${id}`, tag?: string) => parsePlant({ id, name, tag })
const id = parsePlantId
const open = () => createPlantStore({ plants: createMemoryPlantRepository() })

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
    const store = createPlantStore({
      plants: {
        insert: fail,
        find: fail,
        page: fail,
        save: fail,
        saveIf: fail,
        remove: fail,
        removeIf: fail,
      },
    })
    await expect(store.create(plant(1n))).rejects.toBe(busy)
    await expect(store.createAll([plant(1n), plant(2n)])).rejects.toBe(busy)
    await expect(store.find(id(1n))).rejects.toBe(busy)
    await expect(store.list({ limit: 1 })).rejects.toBe(busy)
    await expect(store.replace(plant(1n))).rejects.toBe(busy)
    await expect(store.remove(id(1n))).rejects.toBe(busy)
  })
})

/** A repository without what an adapter may lack. */
function oneByOne(): PlantRepository {
  const { insertAll: _, saveAll: __, ...plants } = createMemoryPlantRepository()
  return plants
}

describe('creating many', () => {
  test('says of each plant what became of it, in their order', async () => {
    const store = open()
    await store.create(plant(2n, 'known', 't'))
    const all = [plant(1n), plant(2n, 'known', 't'), plant(2n, 'known'), plant(1n), plant(1n, 'other')]
    const outcomes = ['inserted', 'already-there', 'id-taken', 'already-there', 'id-taken']
    expect(await store.createAll(all)).toEqual(outcomes)
    expect(await store.find(id(1n))).toMatchObject({ plant: plant(1n) })
    expect(await store.find(id(2n))).toMatchObject({ plant: plant(2n, 'known', 't') })
    expect(await store.createAll([])).toEqual([])
  })

  test('a plant that is removed before it can be compared makes room, but not without end', async () => {
    const plants = oneByOne()
    await plants.insert(plant(1n, 'other'))
    const store = createPlantStore({
      plants: {
        ...plants,
        async insert(each) {
          const outcome = await plants.insert(each)
          if (outcome === 'id-taken') await plants.remove(each.id)
          return outcome
        },
      },
    })
    expect(await store.createAll([plant(1n)])).toEqual(['inserted'])
    expect(await store.find(id(1n))).toMatchObject({ plant: plant(1n) })

    let asked = 0
    const insert = async () => {
      asked++
      return 'id-taken' as const
    }
    const endless = createPlantStore({ plants: { ...oneByOne(), insert } })
    await expect(endless.createAll([plant(1n)])).rejects.toMatchObject({ code: 'store-busy' })
    expect(asked).toBe(1 + 100)
  })

  test('hands on whether they are to be announced, also where a plant makes room', async () => {
    const plants = oneByOne()
    const given: unknown[] = []
    const store = createPlantStore({
      plants: {
        ...plants,
        async insertAll(all, options) {
          given.push([all.length, options])
          return all.length > 1 ? ['id-taken', 'inserted'] : ['inserted']
        },
      },
    })
    await store.createAll([plant(1n), plant(2n)], { announce: false })
    await store.createAll([plant(3n)])
    expect(given).toEqual([
      [2, { announce: false }],
      [1, { announce: false }],
      [1, undefined],
    ])
  })

  test('asks for all of them at once, so that they can share a transaction, also one by one', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    let asked = 0
    const store = createPlantStore({
      plants: {
        ...oneByOne(),
        async insert() {
          if (++asked === 100) resolve()
          await promise
          return 'inserted'
        },
      },
    })
    const all = Array.from({ length: 100 }, (_, n) => plant(BigInt(n)))
    expect(await store.createAll(all)).toEqual(all.map(() => 'inserted'))
  })

  test('compares at most a thousand at the same time', async () => {
    const plants = createMemoryPlantRepository()
    const all = Array.from({ length: 2_500 }, (_, n) => plant(BigInt(n)))
    await plants.insertAll?.(all)
    let comparing = 0
    let most = 0
    const store = createPlantStore({
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
    expect(await store.createAll(all)).toEqual(all.map(() => 'already-there'))
    expect(most).toBe(1_000)
  })
})

describe('replacing many', () => {
  const all = [plant(1n), plant(2n, 'new'), plant(1n, 'last'), plant(2n, 'newest', 't')]

  test.each([
    ['together', createMemoryPlantRepository],
    ['one by one', oneByOne],
  ])('%s reports which were there, and the last one wins', async (_, openRepository) => {
    const store = createPlantStore({ plants: openRepository() })
    await store.create(plant(2n, 'known', 't'))
    expect(await store.replaceAll(all)).toEqual(['inserted', 'replaced', 'replaced', 'replaced'])
    expect((await store.list({ limit: 10 })).plants).toEqual([plant(1n, 'last'), plant(2n, 'newest', 't')])
    expect(await store.replaceAll([])).toEqual([])
  })

  test('passes on whether to announce them, and saves only those that were there', async () => {
    const given: unknown[] = []
    const plants = createMemoryPlantRepository()
    const store = createPlantStore({
      plants: {
        ...plants,
        insertAll(all, options) {
          given.push(['insert', all.length, options])
          return plants.insertAll?.(all) ?? Promise.resolve([])
        },
        saveAll(all, options) {
          given.push(['save', all.length, options])
          return plants.saveAll?.(all) ?? Promise.resolve([])
        },
      },
    })
    await store.replaceAll([plant(1n), plant(2n)])
    await store.replaceAll([plant(1n), plant(2n), plant(3n)], { announce: false })
    expect(given).toEqual([
      ['insert', 2, undefined],
      ['insert', 3, { announce: false }],
      ['save', 2, { announce: false }],
    ])
  })
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
    [1, 3],
    [2, 3],
    [3, 3],
    [4, 3],
    [6, 3],
    [7, 3],
    [5, 1],
    [5, 1000],
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

  test('of one tag pages through that tag only', async () => {
    const store = await filled(10)
    const first = await store.list(parsePlantPageQuery({ limit: 3, tag: 'even' }))
    expect(first.plants.map(each => each.id)).toEqual([20n, 40n, 60n])
    const second = await store.list(parsePlantPageQuery({ limit: 3, tag: 'even', after: first.next }))
    expect(second.plants.map(each => each.id)).toEqual([80n, 100n])
    expect(second.next).toBeUndefined()
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
      await createPlantStore({ plants }).list(parsePlantPageQuery({ limit }))
    expect(asked).toEqual([2, 101, 1_001])
  })
})

describe('a query for a page', () => {
  test('has the limit of 100 and no bounds when nothing is given', () => {
    expect(pageLimitDefault).toBe(100)
    expect(parsePlantPageQuery({})).toEqual({ limit: 100 })
    const query = parsePlantPageQuery({ limit: undefined, after: undefined, tag: undefined })
    expect(Object.keys(query)).toEqual(['limit'])
  })

  test.each([
    [{ limit: 1 }, { limit: 1 }],
    [{ limit: 1000 }, { limit: 1000 }],
    [{ after: plantIdMin }, { limit: 100, after: plantIdMin }],
    [{ after: plantIdMax }, { limit: 100, after: plantIdMax }],
    [{ tag: '' }, { limit: 100, tag: '' }],
    [{ tag: ' ünï 🌱 ' }, { limit: 100, tag: ' ünï 🌱 ' }],
  ])('accepts %o', (input, query) => {
    expect(parsePlantPageQuery(input)).toEqual(query)
  })

  test('a refusal says in words what to mend', () => {
    expect(() => parsePlantPageQuery({ limit: 0, tag: '\0' })).toThrow(
      'limit must be an integer from 1 to 1000; tag must not contain U+0000',
    )
  })

  test.each([
    ...[0, 1001, -1, 1.5, 2 ** 64, Number.NaN, Number.POSITIVE_INFINITY, 100n, '100', '', null].map(
      limit => [{ limit }, ['limit']] as const,
    ),
    ...[1, 'x', null, plantIdMax + 1n, plantIdMin - 1n].map(after => [{ after }, ['after']] as const),
    ...[1n, null, '\ud800', 'a\0'].map(tag => [{ tag }, ['tag']] as const),
    [{ limit: 0, after: '1', tag: '\0' }, ['limit', 'after', 'tag']] as const,
  ])('reports every fault of %o at once', (input, fields) => {
    const faults = fields.map(field => expect.objectContaining({ field }))
    expect(() => parsePlantPageQuery(input)).toThrow(
      expect.objectContaining({ code: 'invalid-plant-query', faults }),
    )
  })
})
