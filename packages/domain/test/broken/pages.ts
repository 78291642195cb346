import {
  type Plant,
  type PlantCount,
  type PlantId,
  type PlantPageQuery,
  type PlantRepository,
  textBytes,
} from '@plant-store/domain'
import { type Break, type Broken, everything, without, withoutTag } from './break.ts'

/** Reads another page than the query asks for. */
function paging(change: (query: PlantPageQuery) => PlantPageQuery): Break {
  return right => ({ page: query => right.page(change(query)) })
}

/** Leaves plants out of a page. */
function shortening(
  shorten: (page: readonly Plant[], query: PlantPageQuery) => readonly Plant[],
): Break {
  return right => ({ page: async query => shorten(await right.page(query), query) })
}

/** Begins a page after another id. */
function continuing(change: (after: bigint) => bigint): Break {
  return paging(query => {
    const { after } = query
    return after === undefined ? query : { ...query, after: change(after) as PlantId }
  })
}

function sorting(compare: (a: Plant, b: Plant) => number): Break {
  return right => ({
    async page(query) {
      const plants = await right.page({ ...query, ...everything })
      return plants.toSorted(compare).slice(0, query.limit)
    },
  })
}

/** Ends a page by another sum than that of the bytes. */
function endingAt(sum: (before: number, plant: Plant) => number): Break {
  return right => ({
    async page(query) {
      const { textBytesMax = Number.POSITIVE_INFINITY } = query
      const page = await right.page(without(query, 'textBytesMax'))
      let bytes = 0
      const end = page.findIndex(plant => {
        bytes = sum(bytes, plant)
        return bytes >= textBytesMax
      })
      return end === -1 ? page : page.slice(0, end + 1)
    },
  })
}

/** Finds the plants of a tag in another way. */
function tagging(hasTag: (plant: Plant, tag: string) => boolean): Break {
  return right => ({
    async page({ tag, limit, ...query }) {
      const plants = await right.page({ ...query, ...everything })
      const ofTag = plants.filter(plant => tag === undefined || hasTag(plant, tag))
      return ofTag.slice(0, limit)
    },
  })
}

function counting(
  count: (right: PlantRepository, query: PlantCount) => Promise<number>,
): Break {
  return right => ({
    async pageCounted(query) {
      const counted = await right.pageCounted(query)
      return { ...counted, total: await count(right, query) }
    },
  })
}

async function totalOf(right: PlantRepository, query: PlantCount): Promise<number> {
  return (await right.pageCounted(query)).total
}

async function lengthOf(right: PlantRepository, query: PlantPageQuery): Promise<number> {
  return (await right.page(query)).length
}

function isOfTag({ tag }: PlantPageQuery): boolean {
  return tag !== undefined
}

function textsOf({ name, tag }: Plant): string {
  return `${name}${tag ?? ''}`
}

/** Repositories whose lists are wrong. */
export const brokenPages: Broken = {
  'takes ids for unsigned': sorting((a, b) =>
    Number(BigInt.asUintN(64, a.id) - BigInt.asUintN(64, b.id)),
  ),
  'sorts ids as text': sorting((a, b) => `${a.id}`.localeCompare(`${b.id}`, 'en')),
  'sorts in descending order': sorting((a, b) => Number(b.id - a.id)),

  'returns pages that are one too long': paging(query => ({
    ...query,
    limit: query.limit + 1,
  })),
  'returns pages that are one too short': shortening((page, { limit }) =>
    page.slice(0, limit - 1),
  ),
  'returns 100 plants at most': shortening(page => page.slice(0, 100)),
  'returns 1,000 plants of a tag at most': shortening((page, query) =>
    isOfTag(query) ? page.slice(0, 1_000) : page,
  ),
  'begins a page with the last plant of the one before': continuing(after => after - 1n),
  'leaves out the plant after the last one': continuing(after => after + 1n),
  'starts at zero': paging(query => ({
    ...query,
    after: query.after ?? (-1n as PlantId),
  })),
  'wraps around after the largest id': paging(query =>
    query.after === 2n ** 63n - 1n ? without(query, 'after') : query,
  ),

  'ignores the tag of a query': paging(query => without(query, 'tag')),
  'ignores where a page of a tag begins': paging(query =>
    isOfTag(query) ? without(query, 'after') : query,
  ),
  'limits first and filters then': right => ({
    async page(query) {
      const ofTag = await right.page({ ...query, ...everything })
      const ids = ofTag.map(({ id }) => id)
      const page = await right.page(without(query, 'tag'))
      return page.filter(({ id }) => ids.includes(id))
    },
  }),
  'ignores an empty tag of a query': paging(query =>
    query.tag === '' ? without(query, 'tag') : query,
  ),
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
        tags.set(plant.id, tags.get(plant.id) ?? plant.tag ?? '')
        return right.save(plant)
      },
    }
  },

  'lets no text end a page of a tag': paging(query =>
    isOfTag(query) ? without(query, 'textBytesMax') : query,
  ),
  'counts the UTF-16 code units of a page': endingAt(
    (sum, plant) => sum + textsOf(plant).length,
  ),
  'counts the code points of a page': endingAt(
    (sum, plant) => sum + [...textsOf(plant)].length,
  ),
  'counts only the names of a page': endingAt(
    (sum, plant) => sum + textBytes(withoutTag(plant)),
  ),
  'looks at each plant of a page alone': endingAt((_, plant) => textBytes(plant)),
  'ends a page before the plant that reaches the bound': shortening(
    (page, { textBytesMax }) =>
      textBytesMax === undefined || page.length < 2 ? page : page.slice(0, -1),
  ),
  'ends a page with the plant that passes the bound': paging(query =>
    query.textBytesMax === undefined
      ? query
      : { ...query, textBytesMax: query.textBytesMax + 1 },
  ),

  'counts the page': counting(lengthOf),
  'counts on and on': counting((right, query) =>
    totalOf(right, { ...query, countMax: everything.limit }),
  ),
  'counts all tags': counting((right, query) => totalOf(right, without(query, 'tag'))),
  'counts only what follows': counting((right, query) =>
    lengthOf(right, { ...query, ...everything }),
  ),
  'counts nothing beside an empty page': counting(async (right, query) => {
    const length = await lengthOf(right, query)
    return length === 0 ? 0 : totalOf(right, query)
  }),
  'returns all plants beside a count': right => ({
    pageCounted: query => right.pageCounted({ ...query, ...everything }),
  }),
  'lets no text end a counted page': right => ({
    pageCounted: query => right.pageCounted(without(query, 'textBytesMax')),
  }),
}
