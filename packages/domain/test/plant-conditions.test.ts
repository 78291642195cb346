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
const current = version('current')
const stale = version('stale')

interface Row {
  readonly what: string
  readonly condition: Condition
  /** Whether a plant with the version `current` meets the condition. */
  readonly ofStored: boolean
  /** Whether a missing plant meets it. */
  readonly ofMissing: boolean
}

const rows: readonly Row[] = [
  { what: 'nothing', condition: {}, ofStored: true, ofMissing: true },
  {
    what: 'its version',
    condition: { matches: [current] },
    ofStored: true,
    ofMissing: false,
  },
  {
    what: 'its version among others',
    condition: { matches: [stale, current] },
    ofStored: true,
    ofMissing: false,
  },
  {
    what: 'another version',
    condition: { matches: [stale] },
    ofStored: false,
    ofMissing: false,
  },
  {
    what: 'its version in capitals',
    condition: { matches: [version('CURRENT')] },
    ofStored: false,
    ofMissing: false,
  },
  {
    what: 'one of no versions',
    condition: { matches: [] },
    ofStored: false,
    ofMissing: false,
  },
  {
    what: 'any version',
    condition: { matches: 'any' },
    ofStored: true,
    ofMissing: false,
  },
  {
    what: 'not its version',
    condition: { differs: [current] },
    ofStored: false,
    ofMissing: true,
  },
  {
    what: 'none of several',
    condition: { differs: [stale, current] },
    ofStored: false,
    ofMissing: true,
  },
  {
    what: 'not another version',
    condition: { differs: [stale] },
    ofStored: true,
    ofMissing: true,
  },
  {
    what: 'not its version in capitals',
    condition: { differs: [version('CURRENT')] },
    ofStored: true,
    ofMissing: true,
  },
  {
    what: 'not one of none',
    condition: { differs: [] },
    ofStored: true,
    ofMissing: true,
  },
  {
    what: 'that there is none',
    condition: { differs: 'any' },
    ofStored: false,
    ofMissing: true,
  },
  {
    what: 'both, and both hold',
    condition: { matches: [current], differs: [stale] },
    ofStored: true,
    ofMissing: false,
  },
  {
    what: 'both, and the first fails',
    condition: { matches: [stale], differs: [stale] },
    ofStored: false,
    ofMissing: false,
  },
  {
    what: 'both, and the second fails',
    condition: { matches: 'any', differs: [current] },
    ofStored: false,
    ofMissing: false,
  },
  {
    what: 'what cannot be',
    condition: { matches: 'any', differs: 'any' },
    ofStored: false,
    ofMissing: false,
  },
]

/**
 * Returns a store with a plant, and the condition with the plant's version instead of
 * `current`.
 */
async function storeWithPlant(condition: Condition) {
  const plants = createMemoryPlantRepository()
  const { version: stored } = await plants.save(plant('old'))
  const translate = (list: Condition['matches']) =>
    typeof list === 'object' ? list.map(name => (name === current ? stored : name)) : list

  return {
    plants,
    store: createPlantUseCases({ plants }),
    storedCondition: {
      matches: translate(condition.matches),
      differs: translate(condition.differs),
    },
  }
}

function emptyStore() {
  const plants = createMemoryPlantRepository()
  return { plants, store: createPlantUseCases({ plants }) }
}

/** Returns the code of an error that is caught. */
function codeOf(error: DomainError): string {
  return error.code
}

test.each(rows)('a condition of $what is met', ({ condition, ofStored, ofMissing }) => {
  expect(isMet(condition, current)).toBe(ofStored)
  expect(isMet(condition, undefined)).toBe(ofMissing)
})

/** One condition of each kind: the judgement itself is tested above. */
const judged = rows.filter(({ what }) =>
  [
    'its version',
    'another version',
    'not its version',
    'that there is none',
    'both, and the first fails',
  ].includes(what),
)

describe.each(judged)('a condition of $what', ({ condition, ofStored, ofMissing }) => {
  test('decides whether a stored plant is replaced', async () => {
    const { store, plants, storedCondition } = await storeWithPlant(condition)
    const before = await plants.find(id)

    const replaced = await store.replace(plant('new'), storedCondition).catch(codeOf)

    const stored = await plants.find(id)
    const version = stored?.version
    expect(stored?.plant).toEqual(ofStored ? plant('new') : before?.plant)
    expect(replaced).toEqual(ofStored ? { version, created: false } : 'condition-failed')
    expect(replaced === 'condition-failed').toBe(!ofStored)
  })

  test('decides whether a missing plant is created', async () => {
    const { store, plants } = emptyStore()

    const created = await store.replace(plant('new'), condition).catch(codeOf)

    const stored = await plants.find(id)
    const version = stored?.version
    expect(stored?.plant).toEqual(ofMissing ? plant('new') : undefined)
    expect(created).toEqual(ofMissing ? { version, created: true } : 'condition-failed')
  })

  test('decides whether a stored plant is found', async () => {
    const { store, plants, storedCondition } = await storeWithPlant(condition)

    const outcome = await store.find(id, storedCondition).catch(codeOf)

    expect(outcome).toEqual(ofStored ? await plants.find(id) : 'condition-failed')
  })

  test('decides whether a stored plant is removed', async () => {
    const { store, plants, storedCondition } = await storeWithPlant(condition)

    const outcome = await store.remove(id, storedCondition).catch(codeOf)

    expect(outcome).toBe(ofStored ? undefined : 'condition-failed')
    expect((await plants.find(id)) === undefined).toBe(ofStored)
  })

  test('says nothing about a missing plant that is read or removed', async () => {
    const { store } = emptyStore()

    expect(await store.find(id, condition).catch(codeOf)).toBe('plant-not-found')
    expect(await store.remove(id, condition).catch(codeOf)).toBe('plant-not-found')
  })
})

describe('a refusal says', () => {
  const refused = (message: string) => ({ code: 'condition-failed', message })

  test('that there is no plant', async () => {
    const { store } = emptyStore()

    const replacing = store.replace(plant('a'), { matches: [stale] })

    await expect(replacing).rejects.toMatchObject(refused('there is no plant with id 1'))
  })

  test('that the plant has another version', async () => {
    const { store } = emptyStore()
    await store.create(plant('a'))

    const removing = store.remove(id, { matches: [stale] })

    const message = 'plant 1 does not have the expected version: read it again'
    await expect(removing).rejects.toMatchObject(refused(message))
  })

  test('that the plant exists', async () => {
    const { store } = emptyStore()
    await store.create(plant('a'))

    const replacing = store.replace(plant('b'), { matches: 'any', differs: 'any' })

    await expect(replacing).rejects.toMatchObject(refused('plant 1 already exists'))
  })

  test('that the plant has an excluded version', async () => {
    const { store, plants } = emptyStore()
    const { version: stored } = await plants.save(plant('a'))

    const replacing = store.replace(plant('b'), { differs: [stored] })

    const message = 'plant 1 still has the excluded version'
    await expect(replacing).rejects.toMatchObject(refused(message))
  })
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

  test('is refused if the plant has another version', async () => {
    const { plants, store, storedName } = await overtaken(1, saveTheirs)
    const stored = await plants.find(id)

    const known = stored?.version ?? stale
    const removing = store.remove(id, { matches: [known, stale] })

    await expect(removing).rejects.toMatchObject({ code: 'condition-failed' })
    expect(await storedName()).toBe('theirs')
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

test.each([
  { what: 'one version', condition: { matches: [current] } },
  { what: 'any version', condition: { matches: 'any' } },
] as const)('a change of $what fails as the repository fails', async ({ condition }) => {
  const busy = new DomainError('store-busy', 'too much')
  const fail = () => Promise.reject(busy)
  const plants = createMemoryPlantRepository()
  const failing = { ...plants, find: fail, saveIf: fail, removeIf: fail }
  const store = createPlantUseCases({ plants: failing })

  await expect(store.replace(plant('a'), condition)).rejects.toBe(busy)
  await expect(store.remove(id, condition)).rejects.toBe(busy)
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
