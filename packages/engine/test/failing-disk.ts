import Database from 'better-sqlite3'
import { vi } from 'vitest'

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
