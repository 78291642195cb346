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
    const tables = connection.prepare("select name from sqlite_schema where type = 'table'").pluck().all()
    if (tables.length === 0) throw new Error('it is empty')
    refuseForeign(tables as string[])
    refuseNewer(versionOf(connection))
    return connection
  } catch (error) {
    connection.close()
    throw error
  }
}

export function versionOf(connection: Database.Database): number {
  return Number(connection.prepare('select version from schema_version').pluck().get())
}
