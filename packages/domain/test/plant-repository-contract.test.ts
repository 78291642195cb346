import type { Plant, PlantCount, PlantId, PlantRepository } from '@plant-store/domain'
import {
  createMemoryPlantRepository,
  plant,
  plantRepositoryContract,
} from '@plant-store/domain/testing'
import { expect, test } from 'vitest'
import { plantSamples } from '../src/testing/plants/contract.ts'
import {
  type Break,
  brokenItems,
  everything,
  testContract,
  without,
} from './broken-items.ts'

type BreakPlants = Break<PlantRepository>

/** Finds the plants of a tag in another way. */
const tagging =
  (hasTag: (plant: Plant, tag: string) => boolean): BreakPlants =>
  right => ({
    page: async ({ tag, limit, ...query }) =>
      (await right.page({ ...query, ...everything }))
        .filter(plant => tag === undefined || hasTag(plant, tag))
        .slice(0, limit),
  })
/** Searches in another way. */
const searching =
  (matches: (plant: Plant, text: string) => boolean): BreakPlants =>
  right => ({
    async search({ name_contains, lookAtMax, limit, textBytesMax: _, ...list }) {
      const looked = await right.page({ ...list, limit: lookAtMax })
      const found = looked.filter(plant => matches(plant, name_contains))
      const last = found.length > limit ? found[limit - 1] : looked[lookAtMax - 1]
      return { plants: found.slice(0, limit), ...(last && { next: last.id }) }
    },
  })
const lower = (text: string) => text.replace(/[A-Z]/g, letter => letter.toLowerCase())
/** Returns another cursor of a search. */
const stopping =
  (change: (next: PlantId, plants: readonly Plant[]) => unknown): BreakPlants =>
  right => ({
    async search(query) {
      const { plants, next } = await right.search(query)
      const changed = next && change(next, plants)
      return { plants, ...(changed !== undefined && { next: changed as PlantId }) }
    },
  })
const counting =
  (count: (right: PlantRepository, query: PlantCount) => Promise<number>): BreakPlants =>
  right => ({
    pageCounted: async query => ({
      ...(await right.pageCounted(query)),
      total: await count(right, query),
    }),
  })
const counted = async (right: PlantRepository, query: PlantCount) =>
  (await right.pageCounted(query)).total
const listed = async (right: PlantRepository, query: PlantCount) =>
  (await right.page(query)).length

const { items, replacements } = brokenItems(plantSamples)
const plants: Readonly<Record<string, BreakPlants>> = {
  'returns the outcomes of many together in another order': right => ({
    insertAll: async all => (await Promise.all(all.map(right.insert))).reverse(),
  }),
  'returns the versions of many together in another order': right => ({
    saveAll: async all => (await right.saveAll(all)).toReversed(),
  }),
  'saves the first of many with one id': right => ({
    saveAll: async all => (await right.saveAll(all.toReversed())).toReversed(),
  }),
  'forgets the tags of many inserted together': right => ({
    insertAll: all => right.insertAll(all.map(plant => without(plant, 'tag'))),
  }),
  'forgets the tags of many saved together': right => ({
    saveAll: all => right.saveAll(all.map(plant => without(plant, 'tag'))),
  }),
  'ignores an empty tag of a query': right => ({
    page: ({ tag, ...query }) => right.page(tag ? { ...query, tag } : query),
  }),
  'looks for a tag in any case': tagging(
    (plant, tag) => plant.tag?.toLowerCase() === tag.toLowerCase(),
  ),
  'looks for a tag as a pattern': tagging(
    (plant, tag) => plant.tag?.startsWith(tag) === true,
  ),
  'keeps an old index of tags': right => {
    const tags = new Map<PlantId, string>()
    return {
      ...tagging(({ id }, tag) => tags.get(id) === tag)(right),
      save(plant) {
        if (plant.tag !== undefined) {
          tags.set(plant.id, plant.tag)
        }
        return right.save(plant)
      },
    }
  },
  'searches in one case': searching(({ name }, text) => name.includes(text)),
  'searches in any case of all letters': searching(({ name }, text) =>
    name.toLowerCase().includes(text.toLowerCase()),
  ),
  'searches normalised names': searching(({ name }, text) =>
    lower(name).normalize('NFC').includes(lower(text).normalize('NFC')),
  ),
  'searches by a pattern': searching(({ name }, text) => {
    const pattern = lower(text).replace(
      /[\W_]/g,
      each => ({ '%': '.*', _: '.' })[each] ?? `\\${each}`,
    )
    return new RegExp(pattern, 's').test(lower(name))
  }),
  'searches how names begin': searching(({ name }, text) =>
    lower(name).startsWith(lower(text)),
  ),
  'searches the first 1,000 characters': searching(({ name }, text) =>
    lower(name.slice(0, 1_000)).includes(lower(text)),
  ),
  'searches names and tags': searching(({ name, tag }, text) =>
    [name, tag ?? ''].some(each => lower(each).includes(lower(text))),
  ),
  'searches all tags': right => ({
    search: query => right.search(without(query, 'tag')),
  }),
  'looks at all plants': right => ({
    search: query => right.search({ ...query, lookAtMax: everything.limit }),
  }),
  'ends a search at an empty page': stopping((next, plants) =>
    plants.length > 0 ? next : undefined,
  ),
  'goes on behind the last match': stopping((next, plants) => plants.at(-1)?.id ?? next),
  'looks at the last plant again': stopping(next => next - 1n),
  'leaves out the plant behind the last one it looked at': stopping(next => next + 1n),
  'lets no limit end a page of a search': right => ({
    search: query => right.search({ ...query, ...everything }),
  }),
  'lets no text end a page of a search': right => ({
    search: query => right.search(without(query, 'textBytesMax')),
  }),
  'goes on only behind a plant that is still there': right => ({
    async search(query) {
      const isGone =
        query.after !== undefined && (await right.find(query.after)) === undefined
      return isGone ? { plants: [] } : right.search(query)
    },
  }),
  'counts the page': counting(listed),
  'counts on and on': counting((right, query) =>
    counted(right, { ...query, countMax: everything.limit }),
  ),
  'counts all tags': counting((right, query) => counted(right, without(query, 'tag'))),
  'counts what is behind': counting((right, query) =>
    listed(right, { ...query, ...everything }),
  ),
  'counts nothing beside an empty page': counting(async (right, query) =>
    (await listed(right, query)) === 0 ? 0 : counted(right, query),
  ),
  'returns all plants beside a count': right => ({
    pageCounted: query => right.pageCounted({ ...query, ...everything }),
  }),
}

testContract(plantRepositoryContract, createMemoryPlantRepository, {
  ...items,
  ...replacements,
  ...plants,
})

test('the repository in memory gives away nothing that changes it', async () => {
  const plants = createMemoryPlantRepository()
  await plants.insert(plant(1n))
  const page = (await plants.page(everything)) as Plant[]
  page.pop()
  expect(await plants.page(everything)).toEqual([plant(1n)])
})
