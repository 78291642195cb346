import { readSync } from 'node:fs'
import type { Database } from 'better-sqlite3'

/** Values from the first page of a store. One that cannot be read is 0. */
export type StoreHeader = Readonly<ReturnType<typeof readHeader>>

/** Reads the header of a store, in which each value has its place in bytes. */
export function readHeader(descriptor: number) {
  const header = Buffer.alloc(72)
  readSync(descriptor, header, 0, header.length, 0)
  return {
    /** The version for writing: 1 without a WAL, 2 with one. */
    writeVersion: header.readUInt8(18),
    /** A counter of changes, which only increases. It leaves some out (`guard.ts`). */
    changes: header.readUInt32BE(24),
    pages: header.readUInt32BE(28),
    /** The id of the store, which no copy of another store has (`store-id.ts`). */
    storeId: header.readUInt32BE(68),
  }
}

/** Returns a value of the header as SQLite sees it, with the WAL. */
export function readPragma(connection: Database, name: string) {
  return Number(connection.pragma(name, { simple: true }))
}
