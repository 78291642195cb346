import { fstatSync, readSync } from 'node:fs'
import type { Database } from 'better-sqlite3'
import { frameHeaderBytes, walHeaderBytes } from './guard.ts'
import { readPragma } from './store-header.ts'
import { keepOpen } from './store-path.ts'

/**
 * The type of a page that is a leaf of a table (sqlite.org/fileformat2.html, "B-tree
 * Pages").
 */
const tableLeaf = 13
/** Where such a page has the number of its cells, and the position of each. */
const cellCountOffset = 3
const cellPositionsOffset = 8

/**
 * An integer of variable length has 7 bits in each byte, but for the last of this many.
 */
const integerBytesMax = 9

/**
 * Returns the ids of the rows of all tables on all pages of a store's file and its WAL,
 * in ascending order. An id may appear several times, and pages that are no longer in use
 * have ids, too.
 *
 * The pages are read without SQLite, because SQLite finds the next id only by way of
 * pages that may be damaged: behind a leaf in the place of another, or where dense ids
 * lie between sparse ones, it would miss rows that it can find by their id.
 */
export function idsOnPages(connection: Database) {
  const pageBytes = readPragma(connection, 'page_size')
  const { name } = connection
  const pagesOfStore = pagesOf(name, pageBytes)
  const pagesOfWal = pagesOf(`${name}-wal`, pageBytes, walHeaderBytes, frameHeaderBytes)

  // A row takes 8 bytes here, and a list of bigints would take four times as many.
  let ids = new BigInt64Array(1_024)
  let count = 0
  for (const pages of [pagesOfStore, pagesOfWal]) {
    for (const id of idsOn(pages)) {
      if (count === ids.length) {
        const larger = new BigInt64Array(2 * count)
        larger.set(ids)
        ids = larger
      }
      // The array takes the 64 bits as a signed integer.
      ids[count] = id
      count += 1
    }
  }
  return ids.subarray(0, count).sort()
}

/** Yields one page of a file after another, in the same buffer. */
function* pagesOf(
  path: string,
  pageBytes: number,
  fileHeaderBytes = 0,
  pageHeaderBytes = 0,
) {
  const descriptor = keepOpen(path)
  if (descriptor === undefined) {
    return
  }

  const { size } = fstatSync(descriptor)
  const page = Buffer.alloc(pageBytes)
  let position = fileHeaderBytes + pageHeaderBytes
  while (position < size) {
    const bytes = readSync(descriptor, page, 0, pageBytes, position)
    // SQLite takes the missing rest of a file that was cut for zeros.
    yield page.fill(0, bytes)
    position += pageHeaderBytes + pageBytes
  }
}

/** Yields the ids of rows on those pages that are leaves of tables. */
function* idsOn(pages: Iterable<Buffer>) {
  for (const page of pages) {
    if (page[0] !== tableLeaf) {
      continue
    }
    const cellCount = page.readUInt16BE(cellCountOffset)
    const positionsEnd = cellPositionsOffset + 2 * cellCount
    const end = Math.min(positionsEnd, page.length - 1)
    for (let offset = cellPositionsOffset; offset < end; offset += 2) {
      // A cell begins with the length of its row. The id follows.
      const cellPosition = page.readUInt16BE(offset)
      const idPosition = readInteger(page, cellPosition).end
      yield readInteger(page, idPosition).value
    }
  }
}

/** Reads an integer of variable length. Bytes behind the page are 0. */
function readInteger(page: Buffer, start: number) {
  let value = 0n
  for (let index = 0; index < integerBytesMax - 1; index += 1) {
    const byte = page[start + index] ?? 0
    value = (value << 7n) | BigInt(byte & 0x7f)
    const isLast = byte < 0x80
    if (isLast) {
      return { value, end: start + index + 1 }
    }
  }
  // The last byte has 8 bits.
  const lastByte = page[start + integerBytesMax - 1] ?? 0
  return { value: (value << 8n) | BigInt(lastByte), end: start + integerBytesMax }
}
