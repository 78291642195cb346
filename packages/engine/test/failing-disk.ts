import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import Database from 'better-sqlite3'
import { type MockInstance, onTestFinished, vi } from 'vitest'

/**
 * Spies on a function of the file system until the test ends, also in modules that
 * another test has loaded in this worker. A mocked module would reach only those loaded
 * later.
 */
export function spyOnFs<Name extends 'fdatasyncSync' | 'openSync' | 'statfsSync'>(
  name: Name,
): MockInstance<(typeof fs)[Name]> {
  const functions: Pick<typeof fs, Name> = fs
  const spy = vi.spyOn(functions, name as never) as MockInstance<(typeof fs)[Name]>
  syncBuiltinESMExports()
  // The function itself is restored before that, by `vitest.restore.ts`.
  onTestFinished(syncBuiltinESMExports)
  return spy
}

/**
 * Lets the disk fail under the statements that contain a text, while the function returns
 * true. Must be called before they are prepared.
 */
export function failStatements(
  connection: Database.Database,
  text: string,
  isFailing: () => boolean,
): void {
  const prepare = connection.prepare.bind(connection)
  vi.spyOn(connection, 'prepare').mockImplementation(sql => {
    const statement = prepare(sql)
    const get = statement.get.bind(statement)
    if (sql.includes(text)) {
      statement.get = () => {
        if (isFailing()) {
          throw new Database.SqliteError('disk I/O error', 'SQLITE_IOERR_WRITE')
        }
        return get()
      }
    }
    return statement
  })
}
