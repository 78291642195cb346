import { type Plant, int64Max, int64Min } from '@plant-store/domain'
import { unavailable } from '../errors.ts'
import { type PlantRow, selectPlants } from '../schema/tables.ts'
import type { StoreCounts, StoreReader } from '../storage.ts'
import { toPlant } from './plants.ts'
import { createRepositories, type Statements } from './repositories.ts'
import { valuesOf } from './statements.ts'

/** What a store contains as of one moment. */
export interface ReadTransaction extends AsyncDisposable {
  readonly schemaVersion: number
  readonly statements: Statements['read']
  readonly query: (sql: string, parameters?: readonly unknown[]) => Promise<readonly object[]>
}

/** Returns what a transaction sees of a store. Disposal ends it. */
export function createReader(reading: ReadTransaction): StoreReader {
  const refuse = () => {
    throw new Error('it is only read')
  }
  const { tokens, webhooks, outbox } = createRepositories({
    changeOf: refuse,
    submit: refuse,
    submitAll: refuse,
    readPage: refuse,
    async read(name, given) {
      const statement = reading.statements[name]
      return (await reading.query(statement.sql, valuesOf(statement, given))) as never
    },
  })
  return {
    schemaVersion: reading.schemaVersion,
    tokens,
    webhooks,
    outbox,
    counts: () => countsIn(reading).catch(unreadable),
    plants: () => plantsIn(reading),
    [Symbol.asyncDispose]: () => reading[Symbol.asyncDispose](),
  }
}

export async function countsIn({ query }: ReadTransaction): Promise<StoreCounts> {
  const countOf = async (table: string) => {
    const [row] = (await query(`select count(*) as count from ${table}`)) as [{ count: bigint }]
    return Number(row.count)
  }
  return { plants: await countOf('plants'), tokens: await countOf('access_tokens') }
}

const pageRows = 1_000

async function* plantsIn({ query }: ReadTransaction): AsyncIterable<readonly Plant[]> {
  const [row = {}] = await query('select * from plants limit 1').catch(unreadable)
  const select = selectPlants(Object.keys(row))
  // Pages by primary key: a cursor would save nothing, and some servers do not keep one open that long.
  for (let from = int64Min; ; ) {
    // A reader faster than the disk would delay signals and timers.
    await new Promise(setImmediate)
    // PostgreSQL would take the least id for a number without an index.
    const condition = from === int64Min ? '' : `where id >= ${from}`
    const page = await query(`${select} ${condition} order by id limit ${pageRows}`).catch(unreadable)
    const rows = page as readonly PlantRow[]
    const last = rows.at(-1)?.id
    if (last === undefined) return
    yield rows.map(toPlant)
    if (last === int64Max) return
    from = last + 1n
  }
}

function unreadable(cause: Error): never {
  throw unavailable(`the store cannot be read: ${cause.message}`, cause)
}
