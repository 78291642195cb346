import assert from 'node:assert/strict'
import type { Database } from 'better-sqlite3'
import type { Entities, ItemOf, Rows } from '../compile-entities.ts'
import { reasonOf, tryTo } from '../errors.ts'
import { isStore } from '../migrations.ts'
import { pageRows, selectList } from '../snapshot.ts'
import { allowShortFile, closeOnError, readColumn } from './connection.ts'
import { idsOnPages } from './ids-on-pages.ts'
import { openToRead } from './schema.ts'

/** The readable part of a damaged store, as of one moment. */
export interface Salvage<Entered extends Entities = Entities> extends AsyncDisposable {
  of<Name extends keyof Entered & string>(name: Name): SalvageOf<ItemOf<Entered[Name]>>
  /**
   * The rows of each entity, also of those that a salvage leaves out. `undefined` if they
   * cannot be counted.
   */
  readonly counts: { readonly [Name in keyof Entered]: number | undefined }
}

export interface SalvageOf<Item> {
  /** The number of rows in an index of the table, or `undefined` if it is damaged too. */
  readonly count: number | undefined
  /** Yields every item that can be read, in order of id. */
  all(): AsyncIterable<readonly Item[]>
  /**
   * Returns how many items `all()` has not read, or `undefined` if that is unknown.
   */
  unread(): number | undefined
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

function createSalvage(connection: Database, entities: Entities): Salvage {
  allowShortFile(connection)
  // The list does not come from `sqlite_schema`, of which a page may be damaged.
  const tables = readColumn(
    connection,
    "select name from pragma_table_list where name not like 'sqlite_%'",
  )
  if (!isStore(entities, tables)) {
    throw new Error('it is empty')
  }

  const salvages: Record<string, SalvageOf<unknown>> = {}
  const counts: Record<string, number | undefined> = {}
  for (const [name, { tables: ownTables, rows }] of Object.entries(entities)) {
    const [table] = ownTables
    // A store of an earlier version does not have every table.
    const hasTable = tables.includes(table)
    if (rows !== null) {
      salvages[name] = hasTable
        ? salvageTable(connection, table, rows)
        : { count: 0, unread: () => 0, async *all() {} }
    }
    const knownCount = hasTable ? salvages[name]?.count : 0
    counts[name] = knownCount ?? countRows(connection, table)
  }

  return {
    of(name) {
      const salvage = salvages[name]
      assert(salvage !== undefined, `${name} cannot be salvaged`)
      return salvage
    },
    counts,
    async [Symbol.asyncDispose]() {
      connection.close()
    },
  }
}

function salvageTable(connection: Database, table: string, rows: Rows<unknown>) {
  const select = connection.prepare<[bigint], object>(
    `select ${columnsIn(connection, table, rows)} from "${table}" where id = ?`,
  )
  // The cast is safe because `parse` judges a row that may contain anything.
  const itemsOf = (id: bigint) =>
    select.all(id).map(row => rows.parse(decodeTexts(row) as never))
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
        // The list is sorted, so an id that stands there twice follows itself.
        const part = [...ids.subarray(start, start + pageRows)]
        const distinct = part.filter((id, index) => id !== ids[start + index - 1])
        const items = distinct.flatMap(id => tryTo(() => itemsOf(id)) ?? [])
        itemsRead += items.length
        yield items
      }
    },
  }
}

/** @throws Error if the file is a newer store */
function columnsIn(
  connection: Database,
  table: string,
  { columns, others = [] }: Rows<unknown>,
) {
  const present = readColumn(connection, `select name from pragma_table_info('${table}')`)
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
function countInIndex(connection: Database, table: string) {
  const indexes = readColumn(
    connection,
    `select name from pragma_index_list('${table}') where "unique" = 0`,
  )
  for (const index of indexes) {
    // If the counts differ, one page of the index is in the place of another.
    const count = countIn(
      connection,
      `"${table}" indexed by "${index}" having count(*) = count(distinct id)`,
    )
    if (count !== undefined) {
      return count
    }
  }
  return
}

function countRows(connection: Database, table: string) {
  return countIn(connection, `"${table}" not indexed`)
}

/** Counts the rows of what `from` names. Returns `undefined` if it is damaged. */
function countIn(connection: Database, from: string) {
  const sql = `select count(*) from ${from}`
  return tryTo(() => {
    const count = connection.prepare<[], number>(sql).pluck().safeIntegers(false)
    return count.get()
  })
}

/** Decodes texts that are bytes, because SQLite does not check that they are UTF-8. */
function decodeTexts(row: object) {
  const decoded = Object.entries(row).map(([column, value]) => [
    column,
    value instanceof Uint8Array ? utf8.decode(value) : value,
  ])
  return Object.fromEntries(decoded)
}
