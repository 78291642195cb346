import { DomainError, plantIdMax, plantIdMin } from '@plant-store/domain'
import { type PlantRow, selectPlants, toPlant } from '../schema/tables.ts'
import type { ReadTransaction, StoreReader, StoreSnapshot } from '../storage.ts'
import { createRepositories, valuesOf } from './repositories.ts'

/** Returns the tokens and webhooks that a transaction sees. Disposal ends it. */
export function createStoreReader(reading: ReadTransaction): StoreReader {
  const refuse = () => {
    throw new Error('it is only read')
  }
  const { tokens, webhooks, outbox } = createRepositories({
    change: refuse,
    submit: refuse,
    submitAll: refuse,
    readPage: refuse,
    read: async (name, ...given) => {
      const statement = reading.statements[name]
      return (await reading.query(statement.sql, valuesOf(statement, ...given))) as never
    },
  })
  return { tokens, webhooks, outbox, [Symbol.asyncDispose]: () => reading[Symbol.asyncDispose]() }
}

const pageRows = 1_000

/** Returns the plants that a transaction sees. Disposal ends it. */
export async function createSnapshot(reading: ReadTransaction): Promise<StoreSnapshot> {
  await using opening = new AsyncDisposableStack()
  opening.use(reading)
  const rowsOf = async <Row>(sql: string) => (await reading.query(sql)) as readonly Row[]
  const countOf = async (table: string) => {
    const [counted] = await rowsOf<{ count: bigint }>(`select count(*) as count from ${table}`)
    return Number(counted?.count)
  }
  const count = await countOf('plants')
  const tokens = await countOf('access_tokens')
  const [row = {}] = await reading.query('select * from plants limit 1')
  const select = selectPlants(Object.keys(row))
  const open = opening.move()

  return {
    schemaVersion: reading.schemaVersion,
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
