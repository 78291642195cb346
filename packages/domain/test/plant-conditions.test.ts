import {
  type Condition,
  createPlantUseCases,
  type DomainError,
  isMet,
  isVersion,
  type PlantRepository,
  parsePlant,
  parsePlantId,
  type Version,
} from '@plant-store/domain'
import { createMemoryPlantRepository, memoryUseCases } from '@plant-store/domain/testing'
import { describe, expect, test } from 'vitest'

const plant = (name: string) => parsePlant({ id: 1n, name })
const id = parsePlantId(1n)
const version = (text: string) => text as Version
const current = version('current')
const stale = version('stale')

interface Row {
  readonly what: string
  readonly condition: Condition
  /** Says whether a plant with the version `current` meets it, and whether none does. */
  readonly metBy: '' | 'stored' | 'missing' | 'stored and missing'
}

const rows: readonly Row[] = [
  { what: 'nothing', condition: {}, metBy: 'stored and missing' },
  { what: 'its version', condition: { matches: [current] }, metBy: 'stored' },
  {
    what: 'its version among others',
    condition: { matches: [stale, current] },
    metBy: 'stored',
  },
  { what: 'another version', condition: { matches: [stale] }, metBy: '' },
  {
    what: 'its version in capitals',
    condition: { matches: [version('CURRENT')] },
    metBy: '',
  },
  { what: 'one of no versions', condition: { matches: [] }, metBy: '' },
  { what: 'any version', condition: { matches: 'any' }, metBy: 'stored' },
  { what: 'not its version', condition: { differs: [current] }, metBy: 'missing' },
  { what: 'none of several', condition: { differs: [stale, current] }, metBy: 'missing' },
  {
    what: 'not another version',
    condition: { differs: [stale] },
    metBy: 'stored and missing',
  },
  { what: 'not one of none', condition: { differs: [] }, metBy: 'stored and missing' },
  { what: 'that there is none', condition: { differs: 'any' }, metBy: 'missing' },
  {
    what: 'both, and both hold',
    condition: { matches: [current], differs: [stale] },
    metBy: 'stored',
  },
  {
    what: 'both, and the first fails',
    condition: { matches: [stale], differs: [stale] },
    metBy: '',
  },
  {
    what: 'both, and the second fails',
    condition: { matches: 'any', differs: [current] },
    metBy: '',
  },
]

/** Returns use cases over a repository with a plant. */
async function storeWithPlant() {
  const plants = createMemoryPlantRepository()
  const { version } = await plants.save(plant('old'))
  return { plants, store: createPlantUseCases({ plants }), version }
}

/** Returns the code of an error that is caught. */
function codeOf(error: DomainError): string {
  return error.code
}

test.each(rows)('a condition of $what is met', ({ condition, metBy }) => {
  expect(isMet(condition, current)).toBe(metBy.includes('stored'))
  expect(isMet(condition, undefined)).toBe(metBy.includes('missing'))
})

/** The judgement itself is tested above. */
describe.each<{ of: string; differs: Condition['differs'] }>([
  { of: 'that is met', differs: [stale] },
  { of: 'that is not met', differs: 'any' },
])('of a stored plant, a condition $of decides', ({ differs }) => {
  const isMetByStored = differs !== 'any'

  test('whether it is replaced', async () => {
    const { store, plants } = await storeWithPlant()

    const replaced = await store.replace(plant('new'), { differs }).catch(codeOf)

    const stored = await plants.find(id)
    expect(stored?.plant).toEqual(plant(isMetByStored ? 'new' : 'old'))
    const saved = { version: stored?.version, created: false }
    expect(replaced).toEqual(isMetByStored ? saved : 'condition-failed')
  })

  test('whether it is found', async () => {
    const { store, plants } = await storeWithPlant()

    const found = await store.find(id, { differs }).catch(codeOf)

    expect(found).toEqual(isMetByStored ? await plants.find(id) : 'condition-failed')
  })

  test('whether it is removed', async () => {
    const { store, plants } = await storeWithPlant()

    const outcome = await store.remove(id, { differs }).catch(codeOf)

    expect(outcome).toBe(isMetByStored ? undefined : 'condition-failed')
    expect((await plants.find(id)) === undefined).toBe(isMetByStored)
  })
})

describe('of a missing plant, a condition', () => {
  test('decides whether it is created', async () => {
    const plants = createMemoryPlantRepository()
    const store = createPlantUseCases({ plants })

    const created = await store.replace(plant('new'), { differs: 'any' })

    const stored = await plants.find(id)
    expect(stored).toEqual({ plant: plant('new'), version: created.version })
    expect(created.created).toBe(true)
  })

  test.each<Condition>([
    {},
    { matches: [stale] },
    { matches: 'any' },
    { differs: 'any' },
  ])('such as %j says nothing if it is read or removed', async condition => {
    const store = memoryUseCases().plants

    expect(await store.find(id, condition).catch(codeOf)).toBe('plant-not-found')
    expect(await store.remove(id, condition).catch(codeOf)).toBe('plant-not-found')
  })
})

const expected = 'does not have the expected version: read it again'

test.each<[problem: string, conditionOf: (stored: Version) => Condition]>([
  [expected, () => ({ matches: [stale] })],
  ['already exists', () => ({ matches: 'any', differs: 'any' })],
  [expected, () => ({ matches: [stale], differs: [stale] })],
  ['still has the excluded version', stored => ({ differs: [stored] })],
])('a refusal says that the plant %s', async (problem, conditionOf) => {
  const { store, version } = await storeWithPlant()

  const replacing = store.replace(plant('b'), conditionOf(version))

  const message = `plant 1 ${problem}`
  await expect(replacing).rejects.toMatchObject({ code: 'condition-failed', message })
})

test('a refusal says that there is no plant', async () => {
  const store = memoryUseCases().plants

  const replacing = store.replace(plant('a'), { matches: [stale] })

  const message = 'there is no plant with id 1'
  await expect(replacing).rejects.toMatchObject({ code: 'condition-failed', message })
})

test('a change of one expected version reads nothing', async () => {
  const plants = createMemoryPlantRepository()
  const { version: first } = await plants.save(plant('a'))
  const find = () => Promise.reject(new Error('it was read'))
  const store = createPlantUseCases({ plants: { ...plants, find } })

  const second = await store.replace(plant('b'), { matches: [first] })
  await store.remove(id, { matches: [second.version] })

  expect(await plants.find(id)).toBeUndefined()
})

describe('a change that is overtaken', () => {
  type Change = (plants: PlantRepository) => Promise<unknown>
  const saveTheirs: Change = plants => plants.save(plant('theirs'))

  /** Others change the plant right before each of the first conditional changes. */
  async function overtaken(times: number, change: Change) {
    const plants = createMemoryPlantRepository()
    await plants.save(plant('old'))
    let timesLeft = times
    const overtake = async () => {
      if (timesLeft > 0) {
        timesLeft--
        await change(plants)
      }
    }
    const store = createPlantUseCases({
      plants: {
        ...plants,
        async saveIf(each, expected) {
          await overtake()
          return plants.saveIf(each, expected)
        },
        async removeIf(each, expected) {
          await overtake()
          return plants.removeIf(each, expected)
        },
      },
    })
    const storedName = async () => (await plants.find(id))?.plant.name
    return { plants, store, storedName }
  }

  test('is judged again, and made if the new state is fine too', async () => {
    const { store, storedName } = await overtaken(99, saveTheirs)

    await store.replace(plant('ours'), { matches: 'any' })

    expect(await storedName()).toBe('ours')
  })

  test('is refused if the plant is gone', async () => {
    const { store, storedName } = await overtaken(1, plants => plants.remove(id))

    const replacing = store.replace(plant('ours'), { matches: 'any' })

    await expect(replacing).rejects.toMatchObject({ code: 'condition-failed' })
    expect(await storedName()).toBeUndefined()
  })

  test('ends with store-busy if others are always faster', async () => {
    const { store, storedName } = await overtaken(Number.POSITIVE_INFINITY, saveTheirs)
    const busy = {
      code: 'store-busy',
      message: expect.stringContaining('keeps changing'),
    }

    const replacing = store.replace(plant('ours'), { matches: 'any' })
    await expect(replacing).rejects.toMatchObject(busy)
    const removing = store.remove(id, { matches: 'any' })
    await expect(removing).rejects.toMatchObject(busy)

    expect(await storedName()).toBe('theirs')
  })
})

test.each(['!', '#', '~', 'x'.repeat(64), "09AZaz-._'()*,:;\\"])(
  '%j is a version',
  text => {
    expect(isVersion(text)).toBe(true)
  },
)

test.each([
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
])('%j is no version', value => {
  expect(isVersion(value)).toBe(false)
})
