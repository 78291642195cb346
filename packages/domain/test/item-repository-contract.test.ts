import { type Int64, parseId } from '@plant-store/domain'
import {
  createMemoryItems,
  type ItemSamples,
  itemRepositoryContract,
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
  const { save, saveIf, ...beds } = createMemoryItems(
    (item: Bed, version) => ({ item, version }),
    (each, { soil }: { soil?: string }) => soil === undefined || each.soil === soil,
  )
  return beds
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
