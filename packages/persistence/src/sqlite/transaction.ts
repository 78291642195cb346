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
 * Returns a function that makes the changes of batches in order in one transaction and returns the affected rows of each
 * batch. It asks for the next batch once it has made the one before. When it throws, it has made none.
 */
export function prepareTransaction(
  connection: Database.Database,
  statements: Statements['change'],
): (batches: Iterable<readonly Change[]>) => number[][] {
  const prepared = prepareAll(connection, statements)
  // Immediate: a transaction that begins by reading could be refused its first write without waiting for the lock.
  return connection.transaction((batches: Iterable<readonly Change[]>) =>
    Array.from(batches, batch =>
      batch.map(([statement, ...parameters]) => prepared[statement].run(...parameters).changes),
    ),
  ).immediate
}
