import { randomInt } from 'node:crypto'
import { closeSync, constants, openSync } from 'node:fs'
import type { Database } from 'better-sqlite3'
import { tryTo } from '../errors.ts'
import { readHeader, readPragma } from './store-header.ts'

/**
 * Returns a random id for a new store, by which its backups are told from those of other
 * stores.
 */
export function createStoreId() {
  return randomInt(1, 2 ** 31)
}

/**
 * Returns the id of a store, or 0 if it has none. It is SQLite's `application_id`, which
 * every copy of the pages contains.
 */
export function storeIdOf(connection: Database) {
  return readPragma(connection, 'application_id')
}

export function setStoreId(connection: Database, id: number) {
  connection.pragma(`application_id = ${id}`)
}

/**
 * Returns the id of the store that a backup is of, or `undefined` if this user can read
 * none: the file is no backup, belongs to another user, or was removed.
 *
 * @param file not open in this process: closing it would drop the locks on it
 */
export function readStoreId(file: string): number | undefined {
  return tryTo(() => {
    using stack = new DisposableStack()
    // Opening a pipe would wait for a writer.
    const descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
    stack.defer(() => closeSync(descriptor))
    return readHeader(descriptor).storeId || undefined
  })
}
