import Database from 'better-sqlite3'
import { refuseForeign, refuseNewer } from '../migrations.ts'
import { busyTimeoutMs } from './connection.ts'

/**
 * A connection for questions about a store that must be there, of whatever version. It may write the log back, so that
 * it leaves no file behind when nobody else has the store open, and changes nothing.
 *
 * @throws Error when the file is no store, or a newer one
 */
export function openQuery(file: string): Database.Database {
  const connection = new Database(file, { fileMustExist: true, timeout: busyTimeoutMs })
  try {
    connection.defaultSafeIntegers(true)
    connection.pragma('query_only = on')
    if (findVersion(connection) === undefined) throw new Error('it is empty')
    return connection
  } catch (error) {
    connection.close()
    throw error
  }
}

/**
 * @returns the version of a store; `undefined` when it is empty
 * @throws Error when it is another program's, or was written by a newer version of this software
 */
export function findVersion(connection: Database.Database): number | undefined {
  const tables = connection.prepare("select name from sqlite_schema where type = 'table'").pluck().all()
  if (tables.length === 0) return undefined
  refuseForeign(tables as string[])
  const version = versionOf(connection)
  refuseNewer(version)
  return version
}

export function versionOf(connection: Database.Database): number {
  return Number(connection.prepare('select version from schema_version').pluck().get())
}
