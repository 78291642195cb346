import type Database from 'better-sqlite3'
import type { Entities, Rows } from '../entity.ts'
import { isStore } from '../migrations.ts'
import { int64Max, int64Min, pageRows, selectList } from '../reader.ts'
import type { Salvage, SalvageOf } from '../storage.ts'
import { closeOnError, reasonOf } from './connection.ts'
import { openToRead } from './schema.ts'

/**
 * Opens a damaged store to read every row that SQLite can find, as of one moment. After a damaged page it goes on with
 * the next id from which SQLite can read.
 *
 * @throws Error
 */
export function openSqliteSalvage(file: string, entities: Entities): Salvage {
  try {
    return closeOnError(openToRead(file), connection => {
      // Lets SQLite open a file that is shorter than its header says.
      connection.unsafeMode().pragma('writable_schema = on')
      const tables = namesIn(connection, "select name from sqlite_schema where type = 'table'")
      if (!isStore(entities, tables)) throw new Error('it is empty')
      const salvages = new Map<string, SalvageOf<unknown>>()
      const counts: Record<string, number | undefined> = {}
      for (const [name, entity] of Object.entries(entities)) {
        const { rows } = entity
        const [table] = entity.tables
        // A store of an earlier version does not have every table.
        const isThere = tables.includes(table)
        const found = rows && (isThere ? salvage(connection, table, rows) : nothing)
        if (found) salvages.set(name, found)
        counts[name] = isThere ? (found?.count ?? countRows(connection, table)) : 0
      }
      return {
        of(name) {
          const found = salvages.get(name)
          if (found === undefined) throw new Error(`${name} cannot be salvaged`)
          return found
        },
        counts,
        async [Symbol.asyncDispose]() {
          connection.close()
        },
      }
    })
  } catch (cause) {
    throw new Error(`nothing in the store ${file} can be read: ${reasonOf(cause)}`, { cause })
  }
}

/** Texts are bytes, as SQLite does not check that they are UTF-8. */
type Row = Readonly<Record<string, unknown>> & { readonly id: bigint }

const nothing: SalvageOf<unknown> = { count: 0, unread: () => 0, async *all() {} }

function salvage(connection: Database.Database, table: string, reading: Rows<unknown>): SalvageOf<unknown> {
  const rowsFrom = connection.prepare<[bigint], Row>(
    `select ${columnsIn(connection, table, reading)} from "${table}" where id >= ? order by id limit ${pageRows}`,
  )
  const count = countInIndex(connection, table)
  let read = 0
  let hasFault = false

  const isReadable = (id: bigint) =>
    id > int64Max || unlessDamaged(() => (rowsFrom.get(id)?.id ?? id) >= id) === true
  /**
   * Returns the next id from which SQLite can read. Growing steps find one, and bisection the first. Steps that double
   * would pass over more of what lies between damaged pages.
   */
  const readableAfter = (id: bigint) => {
    let [below, above] = [id, id + 1n]
    while (!isReadable(above)) [below, above] = [above, above + (above - id) / 4n + 1n]
    while (above - below > 1n) {
      const middle = (below + above) / 2n
      if (isReadable(middle)) above = middle
      else below = middle
    }
    return above
  }

  return {
    count,
    unread() {
      const others = (count ?? read) - read
      if (!hasFault) return Math.max(others, 0)
      return count === undefined || others < 0 ? undefined : others
    },
    async *all() {
      read = 0
      hasFault = false
      for (let from: bigint = int64Min; from <= int64Max; ) {
        // A reader faster than the disk would delay signals and timers.
        await new Promise(setImmediate)
        const rows: Row[] = []
        const isWhole = unlessDamaged(() => {
          for (const row of rowsFrom.iterate(from)) rows.push(row)
          return true
        })
        const ordered = inOrder(rows, from)
        const items = ordered.flatMap(
          row => unlessDamaged(() => [reading.parse(decoded(row) as never)]) ?? [],
        )
        if (!isWhole || items.length < rows.length) hasFault = true
        read += items.length
        yield items
        if (isWhole && rows.length < pageRows) return
        const last = ordered.at(-1)?.id
        from = isWhole && last !== undefined ? last + 1n : readableAfter(last ?? from)
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
  if (found.some(name => !(name in columns) && !others.includes(name)))
    throw new Error(`its ${table} have columns that this version does not know`)
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
    const found = unlessDamaged(() => connection.prepare<[], { rows: bigint; ids: bigint }>(sql).get())
    // If they differ, one page of the index is in the place of another.
    if (found && found.rows === found.ids) return Number(found.rows)
  }
  return undefined
}

function countRows(connection: Database.Database, table: string): number | undefined {
  return unlessDamaged(() => Number(connection.prepare(`select count(*) from "${table}"`).pluck().get()))
}

/** Returns the longest list of rows whose ids ascend. Others are of a page that was cut, or is in the place of another. */
function inOrder(rows: readonly Row[], from: bigint): Row[] {
  interface End {
    readonly row: Row
    readonly before: End | undefined
  }
  // Of the lists of each length, the one with the lowest last id.
  const ends: End[] = []
  for (const row of rows.filter(({ id }) => id >= from)) {
    const length = ends.findLastIndex(end => end.row.id < row.id) + 1
    ends[length] = { row, before: ends[length - 1] }
  }
  const longest: Row[] = []
  for (let end = ends.at(-1); end !== undefined; end = end.before) longest.push(end.row)
  return longest.reverse()
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function decoded(row: Row): object {
  const values = Object.entries(row).map(([column, value]) => [
    column,
    value instanceof Uint8Array ? utf8.decode(value) : value,
  ])
  return Object.fromEntries(values)
}

function unlessDamaged<Result>(read: () => Result): Result | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
