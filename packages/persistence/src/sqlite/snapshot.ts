import { DomainError, plantIdMax, plantIdMin } from '@plant-store/domain'
import type { StoreSnapshot } from '../storage.ts'
import { type PlantRow, selectPlants, tokensHeld, toPlant } from '../tables.ts'
import { openQuery } from './query.ts'
import { reasonOf } from './reason.ts'

const pieceRows = 1_000

/** @param file a store that is there, of any version that this software knows; it is left at that version */
export async function openSqliteSnapshot(file: string): Promise<StoreSnapshot> {
  const reader = attempt('can not be read', () => openQuery(file))
  // The first read is what the snapshot is of; until the transaction ends, no later change is seen.
  const countOf = (table: string) => Number(reader.prepare(`select count(*) from ${table}`).pluck().get())
  const counts = attempt('can not be read', () => {
    reader.exec('begin')
    return { count: countOf('plants'), tokens: countOf(tokensHeld) }
  })
  const found = reader.prepare("select name from pragma_table_info('plants')").pluck().all() as string[]
  const page = reader.prepare(`${selectPlants(found)} where id >= ? order by id limit ?`)

  return {
    ...counts,
    async *plants() {
      let from = plantIdMin
      while (true) {
        const rows = attempt('can not be read', () => page.all(from, pieceRows)) as PlantRow[]
        if (rows.length > 0) yield rows.map(toPlant)
        const last = rows.at(-1)?.id
        if (rows.length < pieceRows || last === undefined || last === plantIdMax) return
        from = last + 1n
        // A reader that is never slower than the disk would keep signals and timers waiting.
        await new Promise(setImmediate)
      }
    },
    async [Symbol.asyncDispose]() {
      reader.close()
    },
  }
}

/** @throws DomainError `store-unavailable`, saying why */
export function attempt<Result>(failure: string, act: () => Result): Result {
  try {
    return act()
  } catch (cause) {
    throw new DomainError('store-unavailable', `the store ${failure}: ${reasonOf(cause)}`, { cause })
  }
}
