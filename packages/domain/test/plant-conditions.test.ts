import {
  type Condition,
  createPlantUseCases,
  DomainError,
  isMet,
  isVersion,
  type PlantRepository,
  parsePlant,
  parsePlantId,
  type Version,
} from '@plant-store/domain'
import { createMemoryPlantRepository } from '@plant-store/domain/testing'
import { describe, expect, test } from 'vitest'

const plant = (name: string) => parsePlant({ id: 1n, name })
const id = parsePlantId(1n)
const version = (text: string) => text as Version
const [current, stale] = [version('current'), version('stale')]

test.each([
  ['no demand', {}, true, true],
  ['its version', { matches: [current] }, true, false],
  ['its version among others', { matches: [stale, current] }, true, false],
  ['another version', { matches: [stale] }, false, false],
  ['no version at all', { matches: [] }, false, false],
  ['any version', { matches: 'any' }, true, false],
  ['not its version', { differs: [current] }, false, true],
  ['none of several', { differs: [stale, current] }, false, true],
  ['not another version', { differs: [stale] }, true, true],
  ['not one of none', { differs: [] }, true, true],
  ['that there is none', { differs: 'any' }, false, true],
  ['both, and both hold', { matches: [current], differs: [stale] }, true, false],
  ['both, and the first fails', { matches: [stale], differs: [stale] }, false, false],
  ['both, and the second fails', { matches: 'any', differs: [current] }, false, false],
  ['what cannot be', { matches: 'any', differs: 'any' }, false, false],
] as const satisfies readonly [string, Condition, boolean, boolean][])(
  'a condition of %s',
  async (_, condition, ofStored, ofNone) => {
    expect([isMet(condition, current), isMet(condition, undefined)]).toEqual([
      ofStored,
      ofNone,
    ])

    for (const isStored of [true, false]) {
      const holds = isStored ? ofStored : ofNone
      const { store, plants, given } = await storeWith(isStored, condition)
      const replaced = await store.replace(plant('new'), given).catch(codeOf)
      const now = await plants.find(id)
      if (holds) {
        expect(now).toEqual({ plant: plant('new'), version: replaced })
      } else {
        expect([replaced, now?.plant.name]).toEqual([
          'condition-failed',
          isStored ? 'old' : undefined,
        ])
      }

      const another = await storeWith(isStored, condition)
      const refused = isStored ? 'condition-failed' : 'plant-not-found'
      const old = await another.plants.find(id)
      const found = await another.store.find(id, another.given).catch(codeOf)
      expect(found).toEqual(isStored && holds ? old : refused)
      const removed = await another.store.remove(id, another.given).catch(codeOf)
      expect(removed).toBe(isStored && holds ? undefined : refused)
      expect((await another.plants.find(id)) === undefined).toBe(!isStored || holds)
    }
  },
)

/** A store with a plant, whose version takes the place of `current` in the condition. */
async function storeWith(isStored: boolean, condition: Condition) {
  const plants = createMemoryPlantRepository()
  const stored = isStored ? await plants.save(plant('old')) : current
  const versions = (given: Condition['matches']) =>
    typeof given === 'object'
      ? given.map(each => (each === current ? stored : each))
      : given
  const given = {
    matches: versions(condition.matches),
    differs: versions(condition.differs),
  }
  return { plants, store: createPlantUseCases({ plants }), given }
}

const codeOf = (error: DomainError) => error.code

test('a refusal says which condition failed', async () => {
  const plants = createMemoryPlantRepository()
  const store = createPlantUseCases({ plants })
  const refused = (message: string) => ({ code: 'condition-failed', message })
  await expect(store.replace(plant('a'), { matches: [stale] })).rejects.toMatchObject(
    refused('there is no plant with id 1'),
  )
  await store.create(plant('a'))
  await expect(store.remove(id, { matches: [stale] })).rejects.toMatchObject(
    refused('plant 1 does not have the expected version: read it again'),
  )
  await expect(
    store.replace(plant('b'), { matches: 'any', differs: 'any' }),
  ).rejects.toMatchObject(refused('plant 1 already exists'))
  const version = await plants.save(plant('a'))
  await expect(store.replace(plant('b'), { differs: [version] })).rejects.toMatchObject(
    refused('plant 1 still has the excluded version'),
  )
})

test('a change of one expected version reads nothing', async () => {
  const plants = createMemoryPlantRepository()
  const first = await plants.save(plant('a'))
  const find = () => Promise.reject(new Error('it was read'))
  const store = createPlantUseCases({ plants: { ...plants, find } })
  const second = await store.replace(plant('b'), { matches: [first] })
  await store.remove(id, { matches: [second] })
  expect(await plants.find(id)).toBeUndefined()
})

describe('a change that is overtaken', () => {
  /** Others change the plant right before each of the first conditional changes. */
  const overtaken = async (
    times: number,
    change: (plants: PlantRepository) => Promise<unknown>,
  ) => {
    const plants = createMemoryPlantRepository()
    await plants.save(plant('old'))
    let left = times
    const first = async () => {
      if (left-- > 0) {
        await change(plants)
      }
    }
    const store = createPlantUseCases({
      plants: {
        ...plants,
        saveIf: (...given) => first().then(() => plants.saveIf(...given)),
        removeIf: (...given) => first().then(() => plants.removeIf(...given)),
      },
    })
    return { plants, store }
  }

  test('is judged on the new state, and made when that meets the condition too', async () => {
    const { plants, store } = await overtaken(99, plants => plants.save(plant('theirs')))
    await store.replace(plant('ours'), { matches: 'any' })
    expect((await plants.find(id))?.plant.name).toBe('ours')
  })

  test('is refused when the new state does not meet the condition', async () => {
    const removing = await overtaken(1, plants => plants.remove(id))
    await expect(
      removing.store.replace(plant('ours'), { matches: 'any' }),
    ).rejects.toMatchObject({
      code: 'condition-failed',
    })
    expect(await removing.plants.find(id)).toBeUndefined()

    const saving = await overtaken(1, plants => plants.save(plant('theirs')))
    const known = (await saving.plants.find(id))?.version as Version
    await expect(
      saving.store.remove(id, { matches: [known, stale] }),
    ).rejects.toMatchObject({
      code: 'condition-failed',
    })
    expect((await saving.plants.find(id))?.plant.name).toBe('theirs')
  })

  test('ends with store-busy when others are always faster', async () => {
    const { plants, store } = await overtaken(Number.POSITIVE_INFINITY, plants =>
      plants.save(plant('theirs')),
    )
    for (const change of [
      store.replace(plant('ours'), { matches: 'any' }),
      store.remove(id, { matches: 'any' }),
    ]) {
      await expect(change).rejects.toMatchObject({ code: 'store-busy' })
    }
    expect((await plants.find(id))?.plant.name).toBe('theirs')
  })

  test('fails as the repository fails', async () => {
    const busy = new DomainError('store-busy', 'too much')
    const fail = () => Promise.reject(busy)
    const plants = {
      ...createMemoryPlantRepository(),
      find: fail,
      saveIf: fail,
      removeIf: fail,
    }
    const store = createPlantUseCases({ plants })
    for (const condition of [{ matches: [current] }, { matches: 'any' }] as const) {
      await expect(store.replace(plant('a'), condition)).rejects.toBe(busy)
      await expect(store.remove(id, condition)).rejects.toBe(busy)
    }
  })
})

test('a version is 1 to 64 of the printable ASCII characters, without quotation marks', () => {
  for (const text of ['!', '#', '~', 'x'.repeat(64), "09AZaz-._'()*,:;\\"]) {
    expect(isVersion(text)).toBe(true)
  }
  for (const other of [
    '',
    'x'.repeat(65),
    '"',
    'a b',
    'é',
    '\x7f',
    '\0',
    'a\n',
    undefined,
    1,
    ['a'],
  ]) {
    expect(isVersion(other)).toBe(false)
  }
})
