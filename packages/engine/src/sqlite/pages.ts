import { fstatSync, readSync } from 'node:fs'
import type Database from 'better-sqlite3'
import { keepOpen } from './store-path.ts'

/**
 * Returns the ids of the rows of all tables on all pages of a store's file and its WAL, in ascending order, some several
 * times. Also those of pages that are no longer in use.
 */
export function idsOnPages(connection: Database.Database): BigInt64Array {
  const pageBytes = Number(connection.pragma('page_size', { simple: true }))
  let ids = new BigInt64Array(1_024)
  let count = 0
  const add = (id: bigint) => {
    if (count === ids.length) {
      const larger = new BigInt64Array(2 * count)
      larger.set(ids)
      ids = larger
    }
    ids[count++] = id
  }
  for (const page of pagesOf(connection.name, 0, 0, pageBytes)) {
    addIds(page, add)
  }
  // It begins with a header, as does each page in it.
  for (const page of pagesOf(`${connection.name}-wal`, 32, 24, pageBytes)) {
    addIds(page, add)
  }
  return ids.subarray(0, count).sort()
}

function* pagesOf(
  file: string,
  headerBytes: number,
  pageHeaderBytes: number,
  pageBytes: number,
) {
  const descriptor = keepOpen(file)
  if (descriptor === undefined) {
    return
  }
  const { size } = fstatSync(descriptor)
  const page = Buffer.alloc(pageBytes)
  for (
    let at = headerBytes + pageHeaderBytes;
    at < size;
    at += pageHeaderBytes + pageBytes
  ) {
    // The last page of a file that was cut is zero where it ends, as SQLite takes it.
    const bytes = readSync(descriptor, page, 0, pageBytes, at)
    yield page.fill(0, bytes)
  }
}

/** The type of a leaf of a table (sqlite.org/fileformat2.html, "B-tree Pages"). */
const tableLeaf = 13

function addIds(page: Buffer, add: (id: bigint) => void): void {
  if (page[0] !== tableLeaf) {
    return
  }
  const cells = page.readUInt16BE(3)
  // Where each cell is. It begins with the length of the row, and then its id.
  for (let at = 8; at < Math.min(8 + 2 * cells, page.length - 1); at += 2) {
    const [, idAt] = integerAt(page, page.readUInt16BE(at))
    const [id] = integerAt(page, idAt)
    // The array takes 64 bits as a signed integer.
    add(id)
  }
}

/** Returns an integer of variable length, and where it ends. */
function integerAt(page: Buffer, at: number): [value: bigint, end: number] {
  let value = 0n
  for (let n = 0; n < 8; n++) {
    const byte = page[at + n] ?? 0
    value = (value << 7n) | BigInt(byte & 0x7f)
    if (byte < 0x80) {
      return [value, at + n + 1]
    }
  }
  return [(value << 8n) | BigInt(page[at + 8] ?? 0), at + 9]
}
