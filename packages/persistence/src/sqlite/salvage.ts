import { closeSync, fstatSync, openSync } from 'node:fs'
import { type Plant, parsePlant, plantIdMax, plantIdMin } from '@plant-store/domain'
import type Database from 'better-sqlite3'
import { isStore, knownVersion } from '../migrations.ts'
import { type Salvage, StoreInUseError } from '../storage.ts'
import { rowColumns, toPlant, type VersionedRow } from '../tables.ts'
import { closeOnError, openConnection, reasonOf } from './connection.ts'
import { versionOf } from './migrate.ts'
import { openPages, type Pages, type StoredRow } from './pages.ts'

/**
 * Opens a damaged store alone, to read every plant whose pages are sound. The first page, which says where the tables
 * are, must be sound.
 *
 * @throws StoreInUseError, or Error
 */
export function openSqliteSalvage(file: string): Salvage {
  try {
    return closeOnError(openAlone(file), connection => salvage(file, connection))
  } catch (cause) {
    if (cause instanceof StoreInUseError) throw cause
    throw new Error(`nothing in the store ${file} can be read: ${reasonOf(cause)}`, { cause })
  }
}

function salvage(file: string, connection: Database.Database): Salvage {
  const { root, columns } = findPlants(connection)
  const count = countInIndex(connection)
  const descriptor = openSync(file, 'r')
  const pages = openPages(descriptor, fstatSync(descriptor).size)
  const read: ReadPlant = (row, overflow) => readPlant(pages, columns, row, overflow)
  const { leaves, uses, damagedPages } = findLeaves(pages, root, read)
  const unreadable = { pages: damagedPages, plants: 0 }

  return {
    count,
    unreadable: () => unreadable,
    async *plants() {
      for (const { page } of leaves) {
        // A reader that is never slower than the disk would keep signals and timers waiting.
        await new Promise(setImmediate)
        const rows = rowsOf(pages, page)
        // It was read a moment ago: the disk fails.
        if (rows === undefined) unreadable.pages++
        const plants: Plant[] = []
        for (const row of rows ?? []) {
          const overflow = pages.overflowPages(row)
          // When two rows point to a page, one of them is wrong, and both look alike.
          const isItsOwn = overflow?.every(each => uses[each] === 1)
          const plant = isItsOwn ? read(row, overflow) : undefined
          if (plant === undefined) unreadable.plants++
          else plants.push(plant)
        }
        yield plants
      }
    },
    async [Symbol.asyncDispose]() {
      // In this order: closing any descriptor of a file gives up the locks that a process has on it.
      connection.close()
      closeSync(descriptor)
    },
  }
}

/** Keeps other processes out, and takes the log into the file, so that every page is there. */
function openAlone(file: string): Database.Database {
  return closeOnError(openConnection(file, { fileMustExist: true }), connection => {
    connection.unsafeMode()
    // Lets SQLite open a file that is shorter than its header says.
    connection.pragma('writable_schema = on')
    connection.pragma('busy_timeout = 0')
    connection.pragma('locking_mode = exclusive')
    try {
      connection.pragma('wal_checkpoint(truncate)')
      connection.exec('begin exclusive')
    } catch (cause) {
      if (!`${(cause as { code?: string }).code}`.startsWith('SQLITE_BUSY')) throw cause
      throw new StoreInUseError(`the store ${file} is in use: stop the server first`, { cause })
    }
    return connection
  })
}

/** Returns where the plants are, and their columns. Throws when the file is no store, or a newer one. */
function findPlants(connection: Database.Database) {
  const rootOf = new Map(
    connection
      .prepare<[], [string, bigint]>("select name, rootpage from sqlite_schema where type = 'table'")
      .raw()
      .all(),
  )
  if (!isStore([...rootOf.keys()])) throw new Error('it is empty')
  refuseNewer(connection)
  const names = connection.prepare("select name from pragma_table_info('plants')").pluck().all()
  const columns = names.filter((name): name is keyof VersionedRow => rowColumns.some(known => known === name))
  if (columns[0] !== 'id' || columns.length < names.length)
    throw new Error('its plants have columns that this version does not know')
  return { root: Number(rootOf.get('plants')), columns }
}

function refuseNewer(connection: Database.Database): void {
  let version: number
  try {
    version = versionOf(connection)
  } catch {
    // It is in a page of its own, which may be damaged.
    return
  }
  if (Number.isInteger(version)) knownVersion(version)
}

/** Returns how many plants the index of tags names; `undefined` when it is damaged too. */
function countInIndex(connection: Database.Database): number | undefined {
  type Entry = readonly [tag: Buffer | null, id: bigint]
  let count = 0
  let last: Entry = [null, plantIdMin - 1n]
  try {
    const entries = connection.prepare<[], Entry>(
      'select cast(tag as blob), id from plants indexed by plants_by_tag order by tag, id',
    )
    for (const entry of entries.raw().iterate()) {
      const order = compareTags(entry[0], last[0])
      // Otherwise a page is in the place of another.
      if (order < 0 || (order === 0 && entry[1] <= last[1])) return undefined
      last = entry
      count++
    }
    return count
  } catch {
    return undefined
  }
}

function compareTags(a: Buffer | null, b: Buffer | null): number {
  if (a === null || b === null) return Number(a !== null) - Number(b !== null)
  return Buffer.compare(a, b)
}

/** A page of rows, and the ids that it may have: above the one, up to the other. */
interface Leaf {
  readonly page: number
  readonly above: bigint
  readonly upTo: bigint
}

/** Finds the pages of rows, in the order of the ids, also those that only a damaged page points to. */
function findLeaves(pages: Pages, root: number, read: ReadPlant) {
  const leaves: Leaf[] = []
  const damaged: Leaf[] = []
  /** How often something points to a page; more than twice is the same as twice. */
  const uses = new Uint8Array(pages.count + 1)
  const use = (page: number) => {
    uses[page] = Math.min((uses[page] as number) + 1, 2)
  }
  const take = (leaf: Leaf) => {
    use(leaf.page)
    leaves.push(leaf)
    for (const row of rowsOf(pages, leaf.page) ?? []) pages.overflowPages(row)?.forEach(use)
  }
  const visit = ({ page, above, upTo }: Leaf): void => {
    const found = pages.tablePage(page)
    const ids = found?.kind === 'leaf' ? idsOf(found.rows) : found?.children.map(child => child.upTo)
    const isInPlace = uses[page] === 0 && ids?.every(id => id > above && id <= upTo)
    if (found === undefined || !isInPlace) damaged.push({ page, above, upTo })
    else if (found.kind === 'leaf') take({ page, above, upTo })
    else {
      use(page)
      let from = above
      for (const child of found.children) {
        visit({ ...child, above: from })
        from = child.upTo
      }
      visit({ page: found.last, above: from, upTo })
    }
  }
  visit({ page: root, above: plantIdMin - 1n, upTo: plantIdMax })

  let end = plantIdMin - 1n
  for (const leaf of damaged.length > 0 ? orphans(pages, uses, read) : []) {
    const isMissing = damaged.some(({ above, upTo }) => leaf.above >= above && leaf.upTo <= upTo)
    // The second of two with the same ids is a copy.
    if (!isMissing || leaf.above < end) continue
    take(leaf)
    end = leaf.upTo
  }
  return { leaves: leaves.sort(inOrder), uses, damagedPages: damaged.length }
}

/** Returns pages of plants that nothing sound points to; none when those that were freed cannot be told from them. */
function orphans(pages: Pages, uses: Uint8Array, read: ReadPlant): Leaf[] {
  const free = pages.freePages()
  if (free === undefined) return []
  const found: Leaf[] = []
  for (const [page, count] of uses.entries()) {
    if (count > 0 || free.has(page)) continue
    const rows = rowsOf(pages, page) ?? []
    const [first, last] = [rows[0], rows.at(-1)]
    const isOfPlants = rows.some(row => read(row, pages.overflowPages(row)) !== undefined)
    if (first && last && isOfPlants) found.push({ page, above: first.id - 1n, upTo: last.id })
  }
  return found.sort(inOrder)
}

const inOrder = (a: Leaf, b: Leaf) => (a.above < b.above ? -1 : 1)
const idsOf = (rows: readonly StoredRow[]) => rows.map(({ id }) => id)

function rowsOf(pages: Pages, page: number): readonly StoredRow[] | undefined {
  const found = pages.tablePage(page)
  return found?.kind === 'leaf' ? found.rows : undefined
}

type ReadPlant = (row: StoredRow, overflow: readonly number[] | undefined) => Plant | undefined

/** Judges the plant like one from outside: its row may be anything. */
function readPlant(
  pages: Pages,
  columns: readonly (keyof VersionedRow)[],
  ...[row, overflow]: Parameters<ReadPlant>
): Plant | undefined {
  const values = overflow && pages.columns(row, overflow)
  // A row that is older than a column is shorter.
  if (values === undefined || values.length > columns.length || values[0] !== null) return undefined
  const stored = columns.map((column, n) => [column, n === 0 ? row.id : (values[n] ?? null)])
  const { version, ...plant } = Object.fromEntries(stored)
  if (typeof version === 'string') return undefined
  try {
    return parsePlant(toPlant(plant))
  } catch {
    return undefined
  }
}
