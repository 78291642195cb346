import type Database from 'better-sqlite3'
import type { Change } from '../group-commit.ts'
import type { Statements } from '../shared-statements.ts'

export function prepareAll<Name extends string>(
  connection: Database.Database,
  sqls: Readonly<Record<Name, string>>,
): Record<Name, Database.Statement> {
  const entries = Object.entries<string>(sqls).map(([name, sql]) => [name, connection.prepare(sql)])
  return Object.fromEntries(entries)
}

/**
 * Returns a function that makes the changes of all batches in order in one transaction, and returns the affected rows
 * of each batch. If it throws, all changes are stored, or none.
 */
export function prepareTransaction(
  connection: Database.Database,
  statements: Statements['change'],
): (batches: Iterable<readonly Change[]>) => number[][] {
  const prepared = prepareAll(connection, statements)
  // `transaction` runs the function between BEGIN and COMMIT. Batches that arrive meanwhile join, as `Array.from` asks
  // for each only when it has run the one before.
  // Immediate: a transaction that begins with a read may be refused its first write without waiting for the
  // lock.
  return connection.transaction((batches: Iterable<readonly Change[]>) =>
    Array.from(batches, batch =>
      batch.map(([statement, ...parameters]) => prepared[statement].run(...parameters).changes),
    ),
  ).immediate
}
