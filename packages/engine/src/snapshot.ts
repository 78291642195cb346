import assert from 'node:assert/strict'
import { setImmediate } from 'node:timers/promises'
import type { CompiledEntities, Entities, Entity } from './compile-entities.ts'
import { isDamage, unavailableError } from './errors.ts'
import { refuseMigration } from './migrations.ts'
import type { Runner } from './runner.ts'
import { valuesOf } from './statements/statement.ts'
import type { StoreContent, StoreReader } from './types.ts'

/** A transaction that sees a store as of one moment. Disposal ends it. */
export interface ReadTransaction extends AsyncDisposable {
  readonly schemaVersion: number
  readonly compiled: CompiledEntities
  readonly query: Query
}

type Query = (
  sql: string,
  parameters?: readonly unknown[],
) => Promise<readonly Readonly<Record<string, unknown>>[]>

/** The part of a transaction that needs no statements. */
type TableReader = Pick<ReadTransaction, 'schemaVersion' | 'query'>

/** How many rows of a whole table are read at a time. */
export const pageRows = 1_000

/** Returns a reader of a transaction. Its disposal ends the transaction. */
export function createReader(
  { entities, translateError }: StoreContent,
  transaction: ReadTransaction,
): StoreReader {
  const { compiled, schemaVersion } = transaction

  /** A statement of this release may need what a store of an earlier version lacks. */
  const explain = (error: unknown): never => {
    if (!isDamage(error)) {
      refuseMigration(entities, schemaVersion)
    }
    throw error
  }

  const query: Query = async (sql, parameters) => {
    try {
      return await transaction.query(sql, parameters).catch(explain)
    } catch (cause) {
      const error = cause instanceof Error ? cause : new Error(String(cause))
      const message = `the store cannot be read: ${error.message}`
      throw translateError(unavailableError(message, error))
    }
  }
  const tables = { schemaVersion, query }

  return {
    ...compiled.ports(readingRunner(query)),
    schemaVersion,
    async counts() {
      const { counts } = await contentsOf(entities, tables)
      return counts
    },
    all(name) {
      const entity = entities[name]
      assert(entity !== undefined, `the store has an entity ${name}`)
      return allIn(entity, tables)
    },
    [Symbol.asyncDispose]: () => transaction[Symbol.asyncDispose](),
  }
}

/** Returns a runner that refuses changes. */
function readingRunner(query: Query): Runner {
  function refuse(): never {
    throw new Error('it is only read')
  }
  return {
    bind: refuse,
    submit: refuse,
    submitAll: refuse,
    read(statement, values) {
      if (statement.bound !== undefined) {
        // Only a storage ends a page at its size on SQLite. `all` reads whole tables.
        return refuse()
      }
      const rows = query(statement.sql, valuesOf(statement, values))
      // As in a storage, the contracts of the ports prove the types of rows.
      return rows as Promise<never>
    },
  }
}

/**
 * Returns the version of a store, and counts the rows of every entity. A store of an
 * earlier version has none of the later ones.
 */
export async function contentsOf(
  entities: Entities,
  { schemaVersion, query }: TableReader,
) {
  const counts: Record<string, number> = {}
  for (const [name, entity] of Object.entries(entities)) {
    counts[name] = 0
    if (hasTablesOf(entity, schemaVersion)) {
      const [row] = await query(`select count(*) as count from "${entity.tables[0]}"`)
      counts[name] = Number(row?.['count'])
    }
  }
  return { schemaVersion, counts }
}

/** Returns whether a store of this version has the tables of an entity. */
function hasTablesOf({ migrations }: Entity, schemaVersion: number) {
  return Object.keys(migrations).some(version => Number(version) <= schemaVersion)
}

/**
 * Yields all items of an entity in order of id, page by page, because some servers do not
 * keep a cursor open that long.
 */
async function* allIn(entity: Entity, { schemaVersion, query }: TableReader) {
  const {
    tables: [table],
    rows: reading,
  } = entity
  if (reading === null) {
    throw new Error(`${table} are not read one after another`)
  }
  if (!hasTablesOf(entity, schemaVersion)) {
    return
  }

  const [row = {}] = await query(`select * from "${table}" limit 1`)
  const select = selectList(reading.columns, Object.keys(row), column => `"${column}"`)
  let after: bigint | undefined
  for (;;) {
    // A reader that is faster than the disk would delay signals and timers.
    await setImmediate()
    // The id is quoted, because PostgreSQL would take the least id for a number, for
    // which there is no index.
    const condition = after === undefined ? '' : `where id > '${after}'`
    const rows = await query(
      `select ${select} from "${table}" ${condition} order by id limit ${pageRows}`,
    )
    if (rows.length === 0) {
      return
    }
    // The columns of a row are those that the entity names.
    yield rows.map(row => reading.from(row as never))
    after = BigInt(`${rows.at(-1)?.['id']}`)
  }
}

/**
 * Returns the list of a `select` that reads these columns.
 *
 * @param existing the columns of the table, of which an earlier version has fewer
 */
export function selectList(
  columns: Readonly<Record<string, unknown>>,
  existing: readonly string[],
  read: (column: string) => string,
) {
  const selected = Object.keys(columns).map(name => {
    const value = existing.includes(name) ? read(name) : 'null'
    return `${value} as "${name}"`
  })
  return selected.join(', ')
}
