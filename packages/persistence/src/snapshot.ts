import { DomainError, plantIdMax, plantIdMin } from '@plant-store/domain'
import type { StoreSnapshot } from './storage.ts'
import { type PlantRow, selectPlants, toPlant } from './tables.ts'

/** A read-only transaction on a store of any known version. */
export interface SnapshotReader extends AsyncDisposable {
  readonly schemaVersion: number
  query(sql: string): Promise<readonly object[]>
}

const pageRows = 1_000

/** Returns the plants that the reader's transaction sees. Disposal closes the reader. */
export async function createSnapshot(reader: SnapshotReader): Promise<StoreSnapshot> {
  await using opening = new AsyncDisposableStack()
  opening.use(reader)
  const rowsOf = async <Row>(sql: string) => (await reader.query(sql)) as readonly Row[]
  const countOf = async (table: string) => {
    const [counted] = await rowsOf<{ count: bigint }>(`select count(*) as count from ${table}`)
    return Number(counted?.count)
  }
  const count = await countOf('plants')
  const tokens = await countOf('access_tokens')
  const [row = {}] = await reader.query('select * from plants limit 1')
  const select = selectPlants(Object.keys(row))
  const open = opening.move()

  return {
    schemaVersion: reader.schemaVersion,
    count,
    tokens,
    async *plants() {
      // Pages by primary key: a cursor would save nothing, and some servers do not keep one open that long.
      for (let from = plantIdMin; ; ) {
        // A reader faster than the disk would delay signals and timers.
        await new Promise(setImmediate)
        // PostgreSQL would take the least id for a number without an index.
        const condition = from === plantIdMin ? '' : `where id >= ${from}`
        const rows = await rowsOf<PlantRow>(`${select} ${condition} order by id limit ${pageRows}`).catch(
          unreadable,
        )
        const last = rows.at(-1)?.id
        if (last === undefined) return
        yield rows.map(toPlant)
        if (last === plantIdMax) return
        from = last + 1n
      }
    },
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}

function unreadable(cause: Error): never {
  throw new DomainError('store-unavailable', `the store cannot be read: ${cause.message}`, { cause })
}
