import type Database from 'better-sqlite3'
import type { Change } from '../group-commit.ts'
import type { ChangeStatement } from '../shared-statements.ts'
import { statements } from './statements.ts'

/**
 * Returns a function that makes the changes of a batch in order in one transaction and returns the affected rows of
 * each. When it throws, none was made.
 */
export function prepareTransaction(connection: Database.Database): (batch: readonly Change[]) => number[] {
  const prepared = Object.fromEntries(
    Object.entries(statements.change).map(([name, sql]) => [name, connection.prepare(sql)]),
  ) as Record<ChangeStatement, Database.Statement>

  // Immediate: a transaction that begins by reading could be refused its first write without waiting for the lock.
  return connection.transaction((batch: readonly Change[]) =>
    batch.map(([statement, ...parameters]) => prepared[statement].run(...parameters).changes),
  ).immediate
}
