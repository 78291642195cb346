import { type Plant, parsePlant, plantIdMax, plantIdMin } from '@plant-store/domain'
import type Database from 'better-sqlite3'
import { toPlant } from '../repositories/plants.ts'
import { isStore } from '../schema/migrations.ts'
import { type PlantRow, plantColumns, rowColumns, typeOf } from '../schema/tables.ts'
import type { Salvage } from '../storage.ts'
import { closeOnError, reasonOf } from './connection.ts'
import { openToRead } from './schema.ts'

/**
 * Opens a damaged store to read every plant that SQLite can find, as of one moment. After a damaged page it goes on with
 * the next id from which SQLite can read.
 *
 * @throws Error
 */
export function openSqliteSalvage(file: string): Salvage {
  try {
    return closeOnError(openToRead(file), connection => {
      // Lets SQLite open a file that is shorter than its header says.
      connection.unsafeMode().pragma('writable_schema = on')
      return salvage(connection)
    })
  } catch (cause) {
    throw new Error(`nothing in the store ${file} can be read: ${reasonOf(cause)}`, { cause })
  }
}

const pageRows = 1_000

/** Texts are bytes, as SQLite does not check that they are UTF-8. */
type Row = Readonly<Record<string, unknown>> & { readonly id: bigint }

function salvage(connection: Database.Database): Salvage {
  const rowsFrom = connection.prepare<[bigint], Row>(
    `select ${columnsIn(connection)} from plants where id >= ? order by id limit ${pageRows}`,
  )
  const count = countInIndex(connection)
  let read = 0
  let hasFault = false

  const isReadable = (id: bigint) =>
    id > plantIdMax || unlessDamaged(() => (rowsFrom.get(id)?.id ?? id) >= id) === true
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
    async *plants() {
      for (let from: bigint = plantIdMin; from <= plantIdMax; ) {
        // A reader faster than the disk would delay signals and timers.
        await new Promise(setImmediate)
        const rows: Row[] = []
        const isWhole = unlessDamaged(() => {
          for (const row of rowsFrom.iterate(from)) rows.push(row)
          return true
        })
        const ordered = inOrder(rows, from)
        const plants = ordered.flatMap(row => unlessDamaged(() => parseRow(row)) ?? [])
        if (!isWhole || plants.length < rows.length) hasFault = true
        read += plants.length
        yield plants
        if (isWhole && rows.length < pageRows) return
        const last = ordered.at(-1)?.id
        from = isWhole && last !== undefined ? last + 1n : readableAfter(last ?? from)
      }
    },
    async [Symbol.asyncDispose]() {
      connection.close()
    },
  }
}

/**
 * Returns the columns of a plant in SQL.
 *
 * @throws Error if the file is not a store, or a newer one
 */
function columnsIn(connection: Database.Database): string {
  const namesOf = (sql: string) => connection.prepare(sql).pluck().all() as string[]
  if (!isStore(namesOf("select name from sqlite_schema where type = 'table'"))) throw new Error('it is empty')
  const found = namesOf("select name from pragma_table_info('plants')")
  if (found.some(name => !rowColumns.some(known => known === name)))
    throw new Error('its plants have columns that this version does not know')
  const selected = plantColumns.map(column => {
    if (!found.includes(column)) return `null as "${column}"`
    return typeOf[column] === 'text' ? `cast("${column}" as blob) as "${column}"` : `"${column}"`
  })
  return selected.join(', ')
}

/** Returns the number of plants in the index of tags, or `undefined` if it is damaged too. */
function countInIndex(connection: Database.Database): number | undefined {
  const sql = 'select count(*) as rows, count(distinct id) as ids from plants indexed by plants_by_tag'
  const found = unlessDamaged(() => connection.prepare<[], { rows: bigint; ids: bigint }>(sql).get())
  // If they differ, one page of the index is in the place of another.
  return found && found.rows === found.ids ? Number(found.rows) : undefined
}

/** Drops rows whose id is too low or too high: their page is in the place of another. */
function inOrder(rows: readonly Row[], from: bigint): Row[] {
  const kept: Row[] = []
  for (const row of rows.filter(({ id }) => id >= from)) {
    while (kept.length > 0 && (kept.at(-1) as Row).id >= row.id) kept.pop()
    kept.push(row)
  }
  return kept
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Parses the plant like outside input, as its row may be anything. */
function parseRow(row: Row): Plant {
  const values = Object.entries(row).map(([column, value]) => [
    column,
    value instanceof Uint8Array ? utf8.decode(value) : value,
  ])
  return parsePlant(toPlant(Object.fromEntries(values) as PlantRow))
}

function unlessDamaged<Result>(read: () => Result): Result | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}
