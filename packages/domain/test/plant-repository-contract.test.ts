import {
  type Plant,
  type PlantCount,
  type PlantId,
  type PlantRepository,
  parsePlant,
  type Version,
  type VersionedPlant,
} from '@plant-store/domain'
import { createMemoryPlantRepository, plantRepositoryContract } from '@plant-store/domain/testing'
import { describe, expect, test } from 'vitest'

describe('the repository in memory keeps the contract', () => {
  test.each(plantRepositoryContract)('$name', ({ run }) => run(createMemoryPlantRepository()))
})

/** A repository that is right but for what is put in its place. */
type Break = (right: PlantRepository) => Partial<PlantRepository>

/** Breaks every plant on its way in. */
const storing =
  (change: (plant: Plant) => unknown): Break =>
  right => ({
    insert: plant => right.insert(change(plant) as Plant),
    save: plant => right.save(change(plant) as Plant),
    saveIf: (plant, expected) => right.saveIf(change(plant) as Plant, expected),
  })
/** Breaks every id, wherever one goes in. */
const identifying =
  (change: (id: bigint) => bigint): Break =>
  right => {
    const broken = (id: PlantId) => change(id) as PlantId
    return {
      insert: plant => right.insert({ ...plant, id: broken(plant.id) }),
      save: plant => right.save({ ...plant, id: broken(plant.id) }),
      find: id => right.find(broken(id)),
      remove: id => right.remove(broken(id)),
    }
  }
const text = (change: (text: string) => string) =>
  storing(({ id, name, tag }) => ({ id, name: change(name), ...(tag !== undefined && { tag: change(tag) }) }))
/** Ends a page by another sum than that of the bytes. */
const endingAt =
  (sum: (before: number, plant: Plant) => number): Break =>
  right => ({
    async page({ textBytesMax = Number.POSITIVE_INFINITY, ...query }) {
      const page = await right.page(query)
      let bytes = 0
      const end = page.findIndex(plant => {
        bytes = sum(bytes, plant)
        return bytes >= textBytesMax
      })
      return end === -1 ? page : page.slice(0, end + 1)
    },
  })
/** Sorts a page in another order. */
const sorting =
  (compare: (a: Plant, b: Plant) => number): Break =>
  right => ({
    page: async ({ limit, ...query }) =>
      (await right.page({ ...query, ...everything })).toSorted(compare).slice(0, limit),
  })
/** Finds the plants of a tag in another way. */
const tagging =
  (hasTag: (plant: Plant, tag: string) => boolean): Break =>
  right => ({
    page: async ({ tag, limit, ...query }) =>
      (await right.page({ ...query, ...everything }))
        .filter(plant => tag === undefined || hasTag(plant, tag))
        .slice(0, limit),
  })
/** Searches names in another way. */
const searching =
  (contains: (name: string, text: string) => boolean): Break =>
  right => ({
    async search({ name_contains, lookAtMax, limit, textBytesMax: _, ...list }) {
      const looked = await right.page({ ...list, limit: lookAtMax })
      const matches = looked.filter(({ name }) => contains(name, name_contains))
      const last = matches.length > limit ? matches[limit - 1] : looked[lookAtMax - 1]
      return { plants: matches.slice(0, limit), ...(last && { next: last.id }) }
    },
  })
const lower = (text: string) => text.replace(/[A-Z]/g, letter => letter.toLowerCase())
/** Returns another cursor of a search. */
const stopping =
  (change: (next: PlantId, plants: readonly Plant[]) => unknown): Break =>
  right => ({
    async search(query) {
      const { plants, next } = await right.search(query)
      const changed = next && change(next, plants)
      return { plants, ...(changed !== undefined && { next: changed as PlantId }) }
    },
  })
/** Counts in another way, if that returns a number. */
const counting =
  (
    count: (
      right: PlantRepository,
      counted: { readonly plants: readonly Plant[]; readonly total: number },
      query: PlantCount,
    ) => number | undefined | Promise<number | undefined>,
  ): Break =>
  right => ({
    async pageCounted(query) {
      const counted = await right.pageCounted(query)
      const total = (await count(right, counted, query)) ?? counted.total
      return { ...counted, total }
    },
  })
/** Names the states of plants by something else. */
const versioning =
  (name: (found: VersionedPlant) => string): Break =>
  right => {
    const renamed = (found: VersionedPlant) => ({ ...found, version: name(found) as Version })
    const find = async (id: PlantId) => {
      const found = await right.find(id)
      return found && renamed(found)
    }
    const expectedIn = async (id: PlantId, expected: Version | undefined) =>
      (await find(id))?.version === expected
        ? (await right.find(id))?.version
        : (expected ?? ('none' as Version))
    const versionOf = async (id: PlantId) => (await find(id))?.version as Version
    return {
      find,
      async save(plant) {
        await right.save(plant)
        return versionOf(plant.id)
      },
      async saveIf(plant, expected) {
        const saved = await right.saveIf(plant, await expectedIn(plant.id, expected))
        return saved && versionOf(plant.id)
      },
      removeIf: async (id, expected) => right.removeIf(id, (await expectedIn(id, expected)) as Version),
    }
  }

const everything = { limit: Number.MAX_SAFE_INTEGER }
const lookAtAll = { lookAtMax: Number.MAX_SAFE_INTEGER }
const later = () => new Promise<void>(resolve => setImmediate(resolve))

const broken: Record<string, Break> = {
  'lets the last writer win': right => ({
    async insert(plant) {
      await right.save(plant)
      return 'inserted'
    },
  }),
  'overwrites, but says that the id is taken': right => ({
    async insert(plant) {
      const outcome = await right.insert(plant)
      if (outcome === 'id-taken') await right.save(plant)
      return outcome
    },
  }),
  'takes the same plant again for inserted': right => ({
    async insert(plant) {
      const there = (await right.find(plant.id))?.plant
      return there?.name === plant.name && there.tag === plant.tag ? 'inserted' : right.insert(plant)
    },
  }),
  'looks first and inserts later': right => ({
    async insert(plant) {
      if ((await right.find(plant.id)) !== undefined) return 'id-taken'
      await later()
      await right.save(plant)
      return 'inserted'
    },
  }),
  'never inserts twice, whatever was removed between': right => {
    const seen = new Set<PlantId>()
    return {
      async insert(plant) {
        if (seen.has(plant.id)) return 'id-taken'
        seen.add(plant.id)
        return right.insert(plant)
      },
    }
  },
  'returns outcomes to the wrong callers': right => {
    let before: Promise<'inserted' | 'id-taken'> = Promise.resolve('inserted')
    return {
      insert(plant) {
        const answer = before
        before = right.insert(plant)
        return answer
      },
    }
  },
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
    insertAll: all => right.insertAll(all.map(({ id, name }) => ({ id, name }))),
  }),
  'forgets the tags of many saved together': right => ({
    saveAll: all => right.saveAll(all.map(({ id, name }) => ({ id, name }))),
  }),
  'answers before the change is made': right => ({
    async save(plant) {
      void later().then(() => right.save(plant))
      return 'a' as Version
    },
  }),
  'lets a later change overtake an earlier one': right => ({
    async save(plant) {
      await later()
      return right.save(plant)
    },
  }),
  'rounds ids to JavaScript numbers': identifying(id => BigInt(Number(id))),
  'keeps 32 bits of an id': identifying(id => BigInt.asIntN(32, id)),
  'takes ids for unsigned': sorting((a, b) => (BigInt.asUintN(64, a.id) < BigInt.asUintN(64, b.id) ? -1 : 1)),
  'sorts ids as text': sorting((a, b) => (`${a.id}` < `${b.id}` ? -1 : 1)),
  'sorts in descending order': sorting((a, b) => (a.id < b.id ? 1 : -1)),
  'lists in the order of insertion': right => {
    const order: PlantId[] = []
    return {
      ...sorting((a, b) => order.indexOf(a.id) - order.indexOf(b.id))(right),
      insert(plant) {
        order.push(plant.id)
        return right.insert(plant)
      },
    }
  },
  'trims texts': text(each => each.trim()),
  'normalises texts': text(each => each.normalize('NFC')),
  'folds the case of texts': text(each => each.toLowerCase()),
  'strips control characters': text(each => each.replace(/\p{Cc}/gu, '')),
  'drops a byte order mark': text(each => each.replace('\ufeff', '')),
  'keeps 255 characters of a text': text(each => each.slice(0, 255)),
  'keeps the basic plane only': text(each => each.replace(/[\u{10000}-\u{10ffff}]/gu, '\ufffd')),
  'keeps ISO 8859-1 only': text(each => each.replace(/[^\0-\xff]/g, '?')),
  'doubles quotes': text(each => each.replaceAll("'", "''")),
  'drops an empty tag': storing(({ tag, ...plant }) => (tag ? { ...plant, tag } : plant)),
  'makes an empty tag of none': storing(plant => ({ ...plant, tag: plant.tag ?? '' })),
  'returns a tag that is undefined': right => ({
    find: async id => {
      const found = await right.find(id)
      const undefinedTag = ({ id, name, tag }: Plant) => ({ id, name, tag }) as Plant
      return found && { ...found, plant: undefinedTag(found.plant) }
    },
  }),
  'returns a tag that is null': storing(plant => ({ ...plant, tag: plant.tag ?? null })),
  'forgets the tag on save': right => ({ save: ({ id, name }) => right.save({ id, name }) }),
  'keeps the old tag on a save without one': right => ({
    async save(plant) {
      return right.save({ ...(await right.find(plant.id))?.plant, ...plant })
    },
  }),
  'saves only stored plants': right => ({
    async save(plant) {
      if ((await right.find(plant.id)) !== undefined) return right.save(plant)
      return 'a' as Version
    },
  }),
  'saves only what is not there': right => ({
    async save(plant) {
      await right.insert(plant)
      return (await right.find(plant.id))?.version as Version
    },
  }),
  'finds null instead of nothing': right => ({
    find: async id => (await right.find(id)) ?? (null as unknown as undefined),
  }),
  'returns pages that are one too long': right => ({
    page: query => right.page({ ...query, limit: query.limit + 1 }),
  }),
  'returns pages that are one too short': right => ({
    page: async query => (await right.page(query)).slice(0, query.limit - 1),
  }),
  ...Object.fromEntries(
    [10, 100, 128, 1_000].map((most): [string, Break] => [
      `returns ${most} plants at most`,
      right => ({ page: async query => (await right.page(query)).slice(0, most) }),
    ]),
  ),
  'returns 1,000 plants of a tag at most': right => ({
    page: async query => (await right.page(query)).slice(0, query.tag === undefined ? query.limit : 1_000),
  }),
  'lets no text end a page': right => ({ page: ({ textBytesMax: _, ...query }) => right.page(query) }),
  'lets no text end a page of a tag': right => ({
    page: ({ textBytesMax, ...query }) =>
      right.page(query.tag === undefined && textBytesMax !== undefined ? { ...query, textBytesMax } : query),
  }),
  'counts the UTF-16 code units of a page': endingAt(
    (bytes, { name, tag = '' }) => bytes + name.length + tag.length,
  ),
  'counts the code points of a page': endingAt(
    (bytes, { name, tag = '' }) => bytes + [...name, ...tag].length,
  ),
  'counts no tags of a page': endingAt((bytes, { name }) => bytes + Buffer.byteLength(name)),
  'looks at each plant of a page alone': endingAt((_, { name, tag = '' }) => Buffer.byteLength(name + tag)),
  'ends a page before the plant that reaches the bound': right => ({
    async page(query) {
      const page = await right.page(query)
      return query.textBytesMax === undefined || page.length < 2 ? page : page.slice(0, -1)
    },
  }),
  'ends a page with the plant that passes the bound': right => ({
    page: query =>
      right.page(
        query.textBytesMax === undefined ? query : { ...query, textBytesMax: query.textBytesMax + 1 },
      ),
  }),
  'begins a page with the last plant of the one before': right => ({
    page: ({ after, ...query }) =>
      right.page(after === undefined ? query : { ...query, after: (after - 1n) as PlantId }),
  }),
  'leaves out the plant after the last one': right => ({
    page: ({ after, ...query }) =>
      right.page(after === undefined ? query : { ...query, after: (after + 1n) as PlantId }),
  }),
  'starts at zero': right => ({
    page: query => right.page(query.after === undefined ? { ...query, after: -1n as PlantId } : query),
  }),
  'wraps around after the largest id': right => ({
    page: ({ after, ...query }) =>
      right.page(after === undefined || after === 2n ** 63n - 1n ? query : { ...query, after }),
  }),
  'ignores the bound of a page': right => ({ page: ({ after: _, ...query }) => right.page(query) }),
  'ignores the tag of a query': right => ({ page: ({ tag: _, ...query }) => right.page(query) }),
  'ignores an empty tag of a query': right => ({
    page: ({ tag, ...query }) => right.page(tag ? { ...query, tag } : query),
  }),
  'ignores the bound where a tag is asked for': right => ({
    page: query =>
      query.tag === undefined ? right.page(query) : right.page({ limit: query.limit, tag: query.tag }),
  }),
  'limits first and looks for the tag then': right => ({
    page: async ({ tag, ...query }) =>
      (await right.page(query)).filter(plant => tag === undefined || plant.tag === tag),
  }),
  'looks for a tag in any case': tagging((plant, tag) => plant.tag?.toLowerCase() === tag.toLowerCase()),
  'looks for a tag as a pattern': tagging((plant, tag) => plant.tag?.startsWith(tag) === true),
  'searches in one case': searching((name, text) => name.includes(text)),
  'searches in any case of all letters': searching((name, text) =>
    name.toLowerCase().includes(text.toLowerCase()),
  ),
  'searches normalised names': searching((name, text) =>
    lower(name).normalize('NFC').includes(lower(text).normalize('NFC')),
  ),
  'searches by a pattern': searching((name, text) =>
    new RegExp(
      lower(text)
        .replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
        .replaceAll('%', '.*')
        .replaceAll('_', '.'),
      's',
    ).test(lower(name)),
  ),
  'searches how names begin': searching((name, text) => lower(name).startsWith(lower(text))),
  'searches the first 1,000 characters': searching((name, text) =>
    lower(name.slice(0, 1_000)).includes(lower(text)),
  ),
  'searches names and tags': right => ({
    async search(query) {
      const tagged = await right.page(query.tag === undefined ? { ...query, limit: query.lookAtMax } : query)
      const { plants, next } = await right.search(query)
      const others = tagged.filter(({ tag }) => tag?.includes(query.name_contains))
      return { plants: [...plants, ...others], ...(next !== undefined && { next }) }
    },
  }),
  'searches all tags': right => ({ search: ({ tag: _, ...query }) => right.search(query) }),
  'looks at all plants': right => ({ search: query => right.search({ ...query, ...lookAtAll }) }),
  'ends a search at an empty page': stopping((next, plants) => (plants.length > 0 ? next : undefined)),
  'goes on behind the last match': stopping((next, plants) => plants.at(-1)?.id ?? next),
  'looks at the last plant again': stopping(next => next - 1n),
  'leaves out the plant behind the last one it looked at': stopping(next => next + 1n),
  'lets no limit end a page of a search': right => ({
    search: query => right.search({ ...query, limit: Number.MAX_SAFE_INTEGER }),
  }),
  'lets no text end a page of a search': right => ({
    search: ({ textBytesMax: _, ...query }) => right.search(query),
  }),
  'goes on only behind a plant that is still there': right => ({
    async search(query) {
      const isGone = query.after !== undefined && (await right.find(query.after)) === undefined
      return isGone ? { plants: [] } : right.search(query)
    },
  }),
  'counts the page': counting((_, { plants }) => plants.length),
  'counts on and on': right => ({
    pageCounted: query => right.pageCounted({ ...query, countMax: Number.MAX_SAFE_INTEGER }),
  }),
  'counts all tags': counting(async (right, _, { tag, ...query }) =>
    tag === undefined ? undefined : (await right.pageCounted(query)).total,
  ),
  'counts what is behind': counting(
    async (right, _, query) => (await right.page({ ...query, ...everything })).length,
  ),
  'counts nothing beside an empty page': counting((_, { plants }) => (plants.length === 0 ? 0 : undefined)),
  'returns all plants beside a count': right => ({
    pageCounted: query => right.pageCounted({ ...query, ...everything }),
  }),
  'removes without telling': right => ({
    async remove(id) {
      await right.remove(id)
      return true
    },
  }),
  'reports without removing': right => ({ remove: async id => (await right.find(id)) !== undefined }),
  'keeps an old index of tags': right => {
    const tags = new Map<PlantId, string>()
    return {
      ...tagging(({ id }, tag) => tags.get(id) === tag)(right),
      save(plant) {
        if (plant.tag !== undefined) tags.set(plant.id, plant.tag)
        return right.save(plant)
      },
    }
  },
  'names a state by its content': versioning(({ plant }) =>
    `${plant.id}-${plant.name}-${plant.tag}`.slice(0, 64),
  ),
  'counts the changes of a plant, and starts over with a new one': right => {
    const counts = new Map<PlantId, number>()
    const count = (id: PlantId) => {
      counts.set(id, (counts.get(id) ?? 0) + 1)
      return `${counts.get(id)}` as Version
    }
    return {
      async find(id) {
        const found = await right.find(id)
        return found && { ...found, version: `${counts.get(id)}` as Version }
      },
      async insert(plant) {
        const outcome = await right.insert(plant)
        if (outcome === 'inserted') counts.set(plant.id, 1)
        return outcome
      },
      async save(plant) {
        await right.save(plant)
        return count(plant.id)
      },
    }
  },
  'returns versions that no entity tag may hold': versioning(({ version }) => `"${version}"`),
  'resolves to another version than it keeps': right => ({
    save: async plant => `${await right.save(plant)}0` as Version,
  }),
  'resolves a conditional save to the version before': right => ({
    saveIf: async (plant, expected) =>
      (await right.saveIf(plant, expected)) && (expected ?? ('a' as Version)),
  }),
  'keeps the version of a plant that is saved as it was': right => ({
    async save(plant) {
      const found = await right.find(plant.id)
      const isSame = found && found.plant.name === plant.name && found.plant.tag === plant.tag
      return isSame ? found.version : right.save(plant)
    },
  }),
  'saves whatever version is expected': right => ({ saveIf: plant => right.save(plant) }),
  'removes whatever version is expected': right => ({ removeIf: id => right.remove(id) }),
  'creates where a version is expected': right => ({
    async saveIf(plant, expected) {
      return (await right.find(plant.id)) === undefined ? right.save(plant) : right.saveIf(plant, expected)
    },
  }),
  'replaces where no plant is expected': right => ({
    saveIf: (plant, expected) => (expected === undefined ? right.save(plant) : right.saveIf(plant, expected)),
  }),
  'compares versions by how they begin': right => ({
    async saveIf(plant, expected) {
      const version = (await right.find(plant.id))?.version
      return right.saveIf(plant, version !== undefined && expected?.startsWith(version) ? version : expected)
    },
    async removeIf(id, expected) {
      const version = (await right.find(id))?.version
      return right.removeIf(id, version !== undefined && expected.startsWith(version) ? version : expected)
    },
  }),
  'looks at the version first and saves later': right => ({
    async saveIf(plant, expected) {
      if ((await right.find(plant.id))?.version !== expected) return undefined
      await later()
      return right.save(plant)
    },
  }),
  'looks at the version first and removes later': right => ({
    async removeIf(id, expected) {
      if ((await right.find(id))?.version !== expected) return false
      await later()
      await right.remove(id)
      return true
    },
  }),
  'forgets the tag on a conditional save': right => ({
    saveIf: ({ id, name }, expected) => right.saveIf({ id, name }, expected),
  }),
}

/** The cases that a repository fails. */
async function caught(make: Break): Promise<string[]> {
  const failed: string[] = []
  for (const { name, run } of plantRepositoryContract) {
    const right = createMemoryPlantRepository()
    await run({ ...right, ...make(right) }).catch(() => failed.push(name))
  }
  return failed
}

const caughtOnce = new Map<Break, Promise<string[]>>()
const caughtBy = (make: Break) => {
  const names = caughtOnce.get(make) ?? caught(make)
  caughtOnce.set(make, names)
  return names
}

describe('the contract catches a repository that', () => {
  test.each(Object.entries(broken))('%s', async (_, make) => {
    expect(await caughtBy(make)).not.toEqual([])
  })
})

test('the contract fails nothing that only passes calls on', async () => {
  expect(await caught(right => ({ insert: plant => right.insert(plant) }))).toEqual([])
})

test('every case of the contract catches some broken repository', async () => {
  const useful = new Set<string>()
  for (const make of Object.values(broken)) for (const name of await caughtBy(make)) useful.add(name)
  expect([...useful].sort()).toEqual(plantRepositoryContract.map(({ name }) => name).sort())
})

test('the repository in memory gives away nothing that changes it', async () => {
  const plants = createMemoryPlantRepository()
  await plants.insert(parsePlant({ id: 1n, name: 'a' }))
  const page = (await plants.page(everything)) as Plant[]
  page.pop()
  expect((await plants.page(everything)).length).toBe(1)
})
