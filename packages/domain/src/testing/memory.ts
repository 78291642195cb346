import type { Identified } from '../values.ts'
import type { Version } from '../version.ts'

/** Returns items in memory with versions, of which a repository for tests is made. `find` resolves to `toFound`. */
export function createMemoryItems<Item extends Identified, Found>(
  toFound: (item: Item, version: Version) => Found,
) {
  const items = new Map<Item['id'], readonly [Item, Version]>()
  let changes = 0
  const save = (item: Item) => {
    const version = `${++changes}` as Version
    items.set(item.id, [item, version])
    return version
  }
  const isExpected = (id: Item['id'], expected: Version | undefined) => items.get(id)?.[1] === expected
  return {
    all: () => [...items.values()].map(([item]) => item),
    async insert(item: Item) {
      if (items.has(item.id)) return 'id-taken'
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
    removeIf: async (id: Item['id'], expected: Version) => isExpected(id, expected) && items.delete(id),
  }
}
