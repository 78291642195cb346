import type Database from 'better-sqlite3'
import type { Entities, Rows } from '../entity.ts'
import { reasonOf } from '../errors.ts'
import { isStore } from '../migrations.ts'
import { pageRows, selectList } from '../snapshot.ts'
import type { Salvage, SalvageOf } from '../types.ts'
import { allowShortFile, closeOnError } from './connection.ts'
import { idsOnPages } from './ids-on-pages.ts'
import { openToRead } from './schema.ts'

/** A row whose texts are bytes, because SQLite does not check that they are UTF-8. */
type Row = Readonly<Record<string, unknown>> & { readonly id: bigint }

/** The salvage of a table that the store does not have. */
const nothing: SalvageOf<unknown> = {
  count: 0,
  unread: () => 0,
  async *all() {},
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * Opens a damaged store to read every row that SQLite can find by its id, as of one
 * moment. The ids are those on all pages of the file and its WAL, whatever they belong
 * to. A row is missed only if SQLite cannot reach its page.
 *
 * @throws Error
 */
export function openSqliteSalvage(file: string, entities: Entities): Salvage {
  try {
    return closeOnError(openToRead(file), connection =>
      createSalvage(connection, entities),
    )
  } catch (cause) {
    const reason = reasonOf(cause)
    throw new Error(`nothing in the store ${file} can be read: ${reason}`, { cause })
  }
}

function createSalvage(connection: Database.Database, entities: Entities): Salvage {
  allowShortFile(connection)
  // The list does not come from `sqlite_schema`, of which a page may be damaged.
  const tables = namesIn(
    connection,
    "select name from pragma_table_list where name not like 'sqlite_%'",
  )
  if (!isStore(entities, tables)) {
    throw new Error('it is empty')
  }

  const salvages = new Map<string, SalvageOf<unknown>>()
  const counts: Record<string, number | undefined> = {}
  for (const [name, { tables: ownTables, rows }] of Object.entries(entities)) {
    const [table] = ownTables
    // A store of an earlier version does not have every table.
    const hasTable = tables.includes(table)
    if (rows !== null) {
      salvages.set(name, hasTable ? salvageTable(connection, table, rows) : nothing)
    }
    const knownCount = hasTable ? salvages.get(name)?.count : 0
    counts[name] = knownCount ?? countRows(connection, table)
  }

  return {
    of(name) {
      const salvage = salvages.get(name)
      if (salvage === undefined) {
        throw new Error(`${name} cannot be salvaged`)
      }
      return salvage
    },
    counts,
    async [Symbol.asyncDispose]() {
      connection.close()
    },
  }
}

function salvageTable(
  connection: Database.Database,
  table: string,
  rows: Rows<unknown>,
): SalvageOf<unknown> {
  const select = connection.prepare<[bigint], Row>(
    `select ${columnsIn(connection, table, rows)} from "${table}" where id = ?`,
  )
  const itemsOf = (id: bigint) => {
    const row = select.get(id)
    if (row === undefined) {
      return []
    }
    // The cast is safe because `parse` judges a row that may contain anything.
    return [rows.parse(decodeTexts(row) as never)]
  }
  const count = countInIndex(connection, table)
  let itemsRead = 0

  return {
    count,
    unread() {
      // Without an index, only a whole table says how many rows it has.
      if (count === undefined) {
        const isAllRead = countRows(connection, table) === itemsRead
        return isAllRead ? 0 : undefined
      }
      return count < itemsRead ? undefined : count - itemsRead
    },
    async *all() {
      itemsRead = 0
      const ids = idsOnPages(connection)
      for (let start = 0; start < ids.length; start += pageRows) {
        // A reader that is faster than the disk would delay signals and timers.
        await new Promise(setImmediate)
        const idsOfTurn = distinctIds(ids, start, start + pageRows)
        const items = idsOfTurn.flatMap(id => tryTo(() => itemsOf(id)) ?? [])
        itemsRead += items.length
        yield items
      }
    },
  }
}

/**
 * Returns the ids of a part of a sorted list, without those that stand there once more.
 */
function distinctIds(ids: BigInt64Array, start: number, end: number): bigint[] {
  const distinct: bigint[] = []
  const last = Math.min(end, ids.length)
  for (let index = start; index < last; index += 1) {
    const id = ids[index]
    if (id !== undefined && id !== ids[index - 1]) {
      distinct.push(id)
    }
  }
  return distinct
}

function namesIn(connection: Database.Database, sql: string): string[] {
  return connection.prepare<[], string>(sql).pluck().all()
}

/** @throws Error if the file is a newer store */
function columnsIn(
  connection: Database.Database,
  table: string,
  { columns, others = [] }: Rows<unknown>,
): string {
  const present = namesIn(connection, `select name from pragma_table_info('${table}')`)
  const known = [...Object.keys(columns), ...others]
  if (present.some(name => !known.includes(name))) {
    throw new Error(`its ${table} have columns that this version does not know`)
  }
  return selectList(columns, present, name =>
    columns[name] === 'text' ? `cast("${name}" as blob)` : `"${name}"`,
  )
}

/**
 * Returns the number of rows in an index of the table that has all ids, or `undefined` if
 * every such index is damaged, too.
 */
function countInIndex(connection: Database.Database, table: string): number | undefined {
  const indexes = namesIn(
    connection,
    `select name from pragma_index_list('${table}') where "unique" = 0`,
  )
  interface Counts {
    readonly rows: bigint
    readonly ids: bigint
  }
  for (const index of indexes) {
    const sql = `select count(*) as rows, count(distinct id) as ids from "${table}" indexed by "${index}"`
    const counts = tryTo(() => connection.prepare<[], Counts>(sql).get())
    // If the counts differ, one page of the index is in the place of another.
    if (counts !== undefined && counts.rows === counts.ids) {
      return Number(counts.rows)
    }
  }
  return undefined
}

function countRows(connection: Database.Database, table: string): number | undefined {
  const sql = `select count(*) from "${table}" not indexed`
  return tryTo(() => Number(connection.prepare(sql).pluck().get()))
}

function decodeTexts(row: Row): object {
  const decoded: Record<string, unknown> = {}
  for (const [column, value] of Object.entries(row)) {
    decoded[column] = value instanceof Uint8Array ? utf8.decode(value) : value
  }
  return decoded
}

/** Returns `undefined` if what is read is damaged. */
function tryTo<Result>(read: () => Result): Result | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
