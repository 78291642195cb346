import { type Int64, parseId } from '@plant-store/domain'
import { createMemoryItems, itemRepositoryContract, pageOf } from '@plant-store/domain/testing'
import { describe, test } from 'vitest'

interface Bed {
  readonly id: Int64
  readonly name: string
}

const bed = (id: bigint, name = `bed ${id}`): Bed => ({ id: parseId(id), name })

function createBeds() {
  const { all, insert, find, remove, removeIf } = createMemoryItems((item: Bed, version) => ({
    item,
    version,
  }))
  return { insert, find, remove, removeIf, page: async (query: { limit: number }) => pageOf(all(), query) }
}

describe('a repository whose items nobody replaces keeps the contract', () => {
  const contract = itemRepositoryContract({
    item: bed,
    full: bed,
    find: (beds: ReturnType<typeof createBeds>, id) => beds.find(id),
    all: {},
    filters: {},
  })
  test.each(contract)('$name', ({ run }) => run(createBeds()))
})
