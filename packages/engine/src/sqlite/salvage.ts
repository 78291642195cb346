import type Database from 'better-sqlite3'
import type { Entities, Rows } from '../entity.ts'
import { isStore } from '../migrations.ts'
import { pageRows, selectList } from '../snapshot.ts'
import type { Salvage, SalvageOf } from '../types.ts'
import { closeOnError } from './connection.ts'
import { idsOnPages } from './pages.ts'
import { reasonOf } from './reasons.ts'
import { openToRead } from './schema.ts'

/**
 * Opens a damaged store to read every row that SQLite can find by its id, as of one moment. The ids are those on all pages
 * of the file and its WAL, whatever they belong to, so a row is missed only if SQLite cannot reach its page.
 *
 * @throws Error
 */
export function openSqliteSalvage(file: string, entities: Entities): Salvage {
  try {
    return closeOnError(openToRead(file), connection => {
      // Lets SQLite open a file that is shorter than its header says.
      connection.unsafeMode().pragma('writable_schema = on')
      // Not from `sqlite_schema`, of which a page may be damaged.
      const tables = namesIn(
        connection,
        "select name from pragma_table_list where name not like 'sqlite_%'",
      )
      if (!isStore(entities, tables)) {
        throw new Error('it is empty')
      }
      const salvages = new Map<string, SalvageOf<unknown>>()
      const counts: Record<string, number | undefined> = {}
      for (const [name, entity] of Object.entries(entities)) {
        const { rows } = entity
        const [table] = entity.tables
        // A store of an earlier version does not have every table.
        const isThere = tables.includes(table)
        const found = rows && (isThere ? salvage(connection, table, rows) : nothing)
        if (found) {
          salvages.set(name, found)
        }
        counts[name] = isThere ? (found?.count ?? countRows(connection, table)) : 0
      }
      return {
        of(name) {
          const found = salvages.get(name)
          if (found === undefined) {
            throw new Error(`${name} cannot be salvaged`)
          }
          return found
        },
        counts,
        async [Symbol.asyncDispose]() {
          connection.close()
        },
      }
    })
  } catch (cause) {
    throw new Error(`nothing in the store ${file} can be read: ${reasonOf(cause)}`, {
      cause,
    })
  }
}

/** Texts are bytes, as SQLite does not check that they are UTF-8. */
type Row = Readonly<Record<string, unknown>> & { readonly id: bigint }

const nothing: SalvageOf<unknown> = { count: 0, unread: () => 0, async *all() {} }

function salvage(
  connection: Database.Database,
  table: string,
  reading: Rows<unknown>,
): SalvageOf<unknown> {
  const rowOf = connection.prepare<[bigint], Row>(
    `select ${columnsIn(connection, table, reading)} from "${table}" where id = ?`,
  )
  const itemOf = (id: bigint) =>
    tryTo(() => {
      const row = rowOf.get(id)
      return row === undefined ? [] : [reading.parse(decoded(row) as never)]
    }) ?? []
  const count = countInIndex(connection, table)
  let read = 0

  return {
    count,
    unread() {
      // Without an index, only a whole table says how many rows it has.
      if (count === undefined) {
        return countRows(connection, table) === read ? 0 : undefined
      }
      return count < read ? undefined : count - read
    },
    async *all() {
      read = 0
      const ids = idsOnPages(connection)
      for (let from = 0; from < ids.length; from += pageRows) {
        // A reader faster than the disk would delay signals and timers.
        await new Promise(setImmediate)
        const some = ids.subarray(from, from + pageRows)
        const items = [...some].flatMap((id, n) =>
          id === ids[from + n - 1] ? [] : itemOf(id),
        )
        read += items.length
        yield items
      }
    },
  }
}

function namesIn(connection: Database.Database, sql: string): string[] {
  return connection.prepare(sql).pluck().all() as string[]
}

/** @throws Error if the file is a newer store */
function columnsIn(
  connection: Database.Database,
  table: string,
  { columns, others = [] }: Rows<unknown>,
): string {
  const found = namesIn(connection, `select name from pragma_table_info('${table}')`)
  if (found.some(name => !(name in columns) && !others.includes(name))) {
    throw new Error(`its ${table} have columns that this version does not know`)
  }
  return selectList(columns, found, name =>
    columns[name] === 'text' ? `cast("${name}" as blob)` : `"${name}"`,
  )
}

/** Returns the number of rows in an index of the table that has all ids, or `undefined` if each is damaged too. */
function countInIndex(connection: Database.Database, table: string): number | undefined {
  for (const index of namesIn(
    connection,
    `select name from pragma_index_list('${table}') where "unique" = 0`,
  )) {
    const sql = `select count(*) as rows, count(distinct id) as ids from "${table}" indexed by "${index}"`
    const found = tryTo(() =>
      connection.prepare<[], { rows: bigint; ids: bigint }>(sql).get(),
    )
    // If they differ, one page of the index is in the place of another.
    if (found && found.rows === found.ids) {
      return Number(found.rows)
    }
  }
  return undefined
}

function countRows(connection: Database.Database, table: string): number | undefined {
  return tryTo(() =>
    Number(
      connection.prepare(`select count(*) from "${table}" not indexed`).pluck().get(),
    ),
  )
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function decoded(row: Row): object {
  const values = Object.entries(row).map(([column, value]) => [
    column,
    value instanceof Uint8Array ? utf8.decode(value) : value,
  ])
  return Object.fromEntries(values)
}

/** Returns `undefined` if what is read is damaged. */
function tryTo<Result>(read: () => Result): Result | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
