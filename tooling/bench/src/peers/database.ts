import { fileURLToPath } from 'node:url'
import type BetterSqlite3 from 'better-sqlite3'

/**
 * Opens a peer's database as the documentation of better-sqlite3 advises: with a WAL, and
 * every statement prepared once. `bun:sqlite` has the same methods.
 */
export function openDatabase(
  Database: typeof BetterSqlite3,
): Record<'insert' | 'find' | 'page', BetterSqlite3.Statement> {
  const { DATABASE_URL = '', SYNCHRONOUS } = process.env
  const db = new Database(fileURLToPath(DATABASE_URL))
  db.exec('pragma journal_mode = wal')
  db.exec(`pragma synchronous = ${SYNCHRONOUS}`)
  db.exec(
    'create table if not exists plants (id integer primary key, name text not null, tag text)',
  )
  return {
    insert: db.prepare('insert into plants (id, name, tag) values (?, ?, ?)'),
    find: db.prepare('select id, name, tag from plants where id = ?'),
    page: db.prepare('select id, name, tag from plants where id > ? order by id limit ?'),
  }
}
