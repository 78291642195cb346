import type Database from 'better-sqlite3'
import type { Write } from '../commit-queue.ts'
import type { Statements, WriteStatement } from '../statements.ts'

/**
 * @returns a function that makes changes in order in one transaction and returns the number of rows each changed;
 *   when it throws, none of them was made.
 */
export function prepareCommit(
  connection: Database.Database,
  statements: Statements['write'],
): (writes: readonly Write[]) => number[] {
  const prepared = Object.fromEntries(
    Object.entries(statements).map(([name, sql]) => [name, connection.prepare(sql)]),
  ) as Record<WriteStatement, Database.Statement>

  // Immediate: a transaction that begins by reading could be refused its first write without waiting for the lock.
  return connection.transaction((writes: readonly Write[]) =>
    writes.map(([statement, ...parameters]) => prepared[statement].run(...parameters).changes),
  ).immediate
}
