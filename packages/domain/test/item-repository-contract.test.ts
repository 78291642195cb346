import { type Int64, parseId } from '@plant-store/domain'
import {
  createMemoryItems,
  type ItemSamples,
  itemRepositoryContract,
  pageOf,
} from '@plant-store/domain/testing'
import { brokenItems, testContract } from './broken-items.ts'

/** An entity whose items nobody replaces. */
interface Bed {
  readonly id: Int64
  readonly name: string
  readonly soil?: string
}

const bed = (id: bigint, name = `bed ${id}`, soil?: string): Bed => ({
  ...{ id: parseId<Int64>(id), name },
  ...(soil !== undefined && { soil }),
})

function createBeds() {
  const { all, insert, find, remove, removeIf } = createMemoryItems((item: Bed, version) => ({
    item,
    version,
  }))
  const page = async ({ soil, ...bounds }: { limit: number; soil?: string }) =>
    pageOf(
      all().filter(each => soil === undefined || each.soil === soil),
      bounds,
    )
  return { insert, find, remove, removeIf, page }
}

const samples: ItemSamples<Bed, { soil?: string }, ReturnType<typeof createBeds>> = {
  item: bed,
  full: (id, text) => bed(id, text, text),
  find: (beds, id) => beds.find(id),
  all: {},
  filters: {
    soil: {
      filter: { soil: 'clay' },
      found: id => bed(id, 'b', 'clay'),
      others: [bed, id => bed(id, 'b', 'sand')],
    },
  },
}

testContract(itemRepositoryContract(samples), createBeds, brokenItems(samples).items)
