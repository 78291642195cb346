import type { PageQuery } from '../page.ts'
import { type Identified, textBytes } from '../values.ts'
import type { Version } from '../version.ts'

/**
 * Returns a repository in memory, for tests.
 *
 * @param toFound returns what `find` resolves to
 * @param matches returns whether a list with these filters has the item
 */
export function createMemoryItems<Item extends Identified, Found, Filter extends object>(
  toFound: (item: Item, version: Version) => Found,
  matches: (item: Item, filter: Filter) => boolean,
) {
  const items = new Map<Item['id'], readonly [Item, Version]>()
  let changes = 0
  const save = (item: Item) => {
    const version = `${++changes}` as Version
    items.set(item.id, [item, version])
    return version
  }
  const isExpected = (id: Item['id'], expected: Version | undefined) =>
    items.get(id)?.[1] === expected
  const listOf = (filter: Filter) =>
    [...items.values()].map(([item]) => item).filter(item => matches(item, filter))
  return {
    /** Returns a whole list, in any order. */
    listOf,
    page: async (query: PageQuery<Item> & Filter) => pageOf(listOf(query), query),
    async insert(item: Item) {
      if (items.has(item.id)) {
        return 'id-taken'
      }
      save(item)
      return 'inserted'
    },
    async find(id: Item['id']) {
      const found = items.get(id)
      return found && toFound(...found)
    },
    save: async (item: Item) => save(item),
    saveIf: async (item: Item, expected: Version | undefined) =>
      isExpected(item.id, expected) ? save(item) : undefined,
    remove: async (id: Item['id']) => items.delete(id),
    removeIf: async (id: Item['id'], expected: Version) =>
      isExpected(id, expected) && items.delete(id),
  }
}

/** Returns a page of items in memory, in order of id. */
export function pageOf<Item extends Identified>(
  items: Iterable<Item>,
  { limit, after, textBytesMax = Number.POSITIVE_INFINITY }: PageQuery<Item>,
): readonly Item[] {
  const page = [...items]
    .filter(({ id }) => after === undefined || id > after)
    .sort((a, b) => (a.id < b.id ? -1 : 1))
    .slice(0, limit)
  let bytes = 0
  const end = page.findIndex(item => {
    bytes += textBytes(item)
    return bytes >= textBytesMax
  })
  return end === -1 ? page : page.slice(0, end + 1)
}
