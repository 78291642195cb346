import { availableParallelism, totalmem } from 'node:os'
import Database from 'better-sqlite3'

/** What a reader has to know about the machine to read the numbers, and nothing that tells whose it is. */
export function describeMachine(): string {
  const db = new Database(':memory:')
  const sqlite = db.prepare<[], string>('select sqlite_version()').pluck().get()
  db.close()
  return [
    `${availableParallelism()} cores and ${Math.round(totalmem() / 2 ** 30)} GiB of memory (${process.platform}, ${process.arch})`,
    `Node ${process.versions.node}`,
    `SQLite ${sqlite}`,
  ].join(', ')
}
