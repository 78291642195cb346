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
 * Opens a damaged store exclusively, to read every plant on sound pages. The first page, which locates the tables, must
 * be sound.
 *
 * @throws StoreInUseError, or Error
 */
export function openSqliteSalvage(file: string): Salvage {
  try {
    return salvage(file)
  } catch (cause) {
    if (cause instanceof StoreInUseError) throw cause
    throw new Error(`nothing in the store ${file} can be read: ${reasonOf(cause)}`, { cause })
  }
}

function salvage(file: string): Salvage {
  const connection = openAlone(file)
  const descriptor = closeOnError(connection, () => openSync(file, 'r'))
  using opening = new DisposableStack()
  opening.adopt(descriptor, closeSync)
  // Closed first: closing any descriptor of a file drops the process's locks on it.
  opening.defer(() => connection.close())
  const { root, columns } = findPlants(connection)
  const count = countInIndex(connection)
  const pages = openPages(descriptor, fstatSync(descriptor).size)
  const read: ReadPlant = (row, overflow) => readPlant(pages, columns, row, overflow)
  const { leaves, uses, damagedPages } = findLeaves(pages, root, read)
  const unreadable = { pages: damagedPages, plants: 0 }
  const opened = opening.move()

  return {
    count,
    unreadable: () => unreadable,
    async *plants() {
      for (const { page } of leaves) {
        // A reader faster than the disk would delay signals and timers.
        await new Promise(setImmediate)
        const rows = rowsOf(pages, page)
        // It was readable a moment ago: the disk fails.
        if (rows === undefined) unreadable.pages++
        const plants: Plant[] = []
        for (const row of rows ?? []) {
          const overflow = pages.overflowPages(row)
          // If two rows point to a page, one of them is wrong, and both look alike.
          const isItsOwn = overflow?.every(each => uses[each] === 1)
          const plant = isItsOwn ? read(row, overflow) : undefined
          if (plant === undefined) unreadable.plants++
          else plants.push(plant)
        }
        yield plants
      }
    },
    async [Symbol.asyncDispose]() {
      opened.dispose()
    },
  }
}

/** Keeps other processes out, and checkpoints the log, so that the file has every page. */
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

/**
 * Returns the root page of the plants, and their columns.
 *
 * @throws Error if the file is not a store, or a newer one
 */
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
  if (columns.length < names.length)
    throw new Error('its plants have columns that this version does not know')
  return { root: Number(rootOf.get('plants')), columns }
}

function refuseNewer(connection: Database.Database): void {
  let version = Number.NaN
  try {
    version = versionOf(connection)
  } catch {
    // It is on a page of its own, which may be damaged.
  }
  if (Number.isInteger(version)) knownVersion(version)
}

/** Returns the number of plants in the index of tags, or `undefined` if it is damaged too. */
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
      // Otherwise one page has replaced another.
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
  if (a === null) return b === null ? 0 : -1
  return b === null ? 1 : Buffer.compare(a, b)
}

/** A page of rows and the range of its ids: greater than `above`, up to `end`. */
interface Leaf {
  readonly page: number
  readonly above: bigint
  readonly upTo: bigint
}

/** Finds the pages of rows in order of id, including those that only a damaged page points to. */
function findLeaves(pages: Pages, root: number, read: ReadPlant) {
  const leaves: Leaf[] = []
  const damaged: Leaf[] = []
  /** The number of pointers to each page, up to two. */
  const uses = new Uint8Array(pages.count + 1)
  const use = (page: number) => {
    uses[page] = Math.min((uses[page] as number) + 1, 2)
  }
  const take = (leaf: Leaf) => {
    leaves.push(leaf)
    for (const row of rowsOf(pages, leaf.page) ?? []) pages.overflowPages(row)?.forEach(use)
  }
  const visit = ({ page, above, upTo }: Leaf): void => {
    const found = pages.tablePage(page)
    const ids = found?.kind === 'leaf' ? idsOf(found.rows) : found?.children.map(child => child.upTo)
    const isInPlace = uses[page] === 0 && ids?.every(id => id > above && id <= upTo)
    if (found === undefined || !isInPlace) {
      damaged.push({ page, above, upTo })
      return
    }
    use(page)
    if (found.kind === 'leaf') {
      take({ page, above, upTo })
      return
    }
    let from = above
    for (const child of found.children) {
      visit({ ...child, above: from })
      from = child.upTo
    }
    visit({ page: found.last, above: from, upTo })
  }
  visit({ page: root, above: plantIdMin - 1n, upTo: plantIdMax })

  let end = plantIdMin - 1n
  for (const leaf of damaged.length > 0 ? orphans(pages, uses, read) : []) {
    const isMissing = damaged.some(({ above, upTo }) => leaf.above >= above && leaf.upTo <= upTo)
    // Of two pages with the same ids, the second is a copy.
    if (!isMissing || leaf.above < end) continue
    take(leaf)
    end = leaf.upTo
  }
  return { leaves: leaves.sort(inOrder), uses, damagedPages: damaged.length }
}

/** Returns pages of plants that no sound page points to. Returns none if freed pages cannot be told from them. */
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

/** Parses the plant like outside input, as its row may be anything. */
function readPlant(
  pages: Pages,
  columns: readonly (keyof VersionedRow)[],
  ...[row, overflow]: Parameters<ReadPlant>
): Plant | undefined {
  const values = overflow && pages.columns(row, overflow)
  // A row older than a column is shorter.
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
