import assert from 'node:assert/strict'
import { compileEntities } from '../compile-entities.ts'
import { GroupQueue } from '../group-queue.ts'
import { postgresDialect } from '../statements/dialect.ts'
import {
  type Change,
  type Statement,
  type Value,
  valuesOf,
} from '../statements/statement.ts'
import { createStorage } from '../storage.ts'
import type { PostgresHandle, Storage, StorageObserver, StoreContent } from '../types.ts'
import { ConnectionPool } from './connection-pool.ts'
import { retryRolledBack } from './retry.ts'
import { missingRightsQuery, refuseMissing, serverRights } from './rights.ts'
import { limitWarnings } from './server-warnings.ts'
import { runGroup } from './steps.ts'

/**
 * How many reads share a round trip. The number is low, so that all connections get some.
 */
const readsMax = 16

/** A read of a group: the statement and its values, in the order of its parameters. */
type Read = readonly [statement: Statement, ...values: Value[]]

/**
 * Attaches a thread to a store.
 *
 * One transaction runs at a time, so that changes of one row take effect in order.
 * Otherwise a later change could overtake one that the server rolled back and that is
 * retried.
 */
export function attachPostgres(
  handle: PostgresHandle,
  { entities, translateError }: StoreContent,
  { onCommit, onServerWarning, ...observer }: StorageObserver,
  onWarning = limitWarnings(onServerWarning),
): Storage {
  const { server, readConnectionsMax, queueChangesMax } = handle
  const { timeoutMs } = server
  const compiled = compileEntities(entities, postgresDialect)
  // Changes have a pool of their own, so that they never wait for reads.
  const changePool = new ConnectionPool(server, 1, onWarning)
  const readPool = new ConnectionPool(server, readConnectionsMax, onWarning)

  /** Returns a query that the server prepares under the name of its statement. */
  function queryOf(statement: Statement, values: Value[]) {
    const name = compiled.names.get(statement)
    assert(name !== undefined, 'every statement has a name')
    return { name, text: statement.sql, values }
  }

  // The reads of one turn share a round trip, because one query a packet costs 2.5 times
  // the processor time.
  const readQueue = new GroupQueue<Read, readonly object[]>({
    async runGroup(group) {
      const queries = group.map(([statement, ...values]) => queryOf(statement, values))
      const results = await retryRolledBack(timeoutMs, () => readPool.run(queries, true))
      return results.map(({ rows }) => rows)
    },
    groupsMax: readConnectionsMax,
    groupChangesMax: readsMax,
  })

  const read = async (statement: Statement, given: object) => {
    const [rows] = await readQueue.submit([[statement, ...valuesOf(statement, given)]])
    assert(rows !== undefined, 'a read has an outcome')
    return rows
  }

  const driver = {
    compiled,
    timeoutMs,
    groupsMax: 1,
    read,
    async runGroup(group: readonly Change[]) {
      const startedMs = performance.now()
      const affectedRows = await retryRolledBack(timeoutMs, () =>
        runGroup(changePool, compiled, group),
      )
      onCommit?.({ changes: group.length, ms: performance.now() - startedMs })
      return affectedRows
    },
    async check() {
      const writeProbe = [
        { text: missingRightsQuery, values: [compiled.tables, serverRights] },
        queryOf(compiled.probeWrite, []),
      ]
      const [[missingRights]] = await Promise.all([
        changePool.run(writeProbe),
        read(compiled.probeRead, {}),
      ])
      refuseMissing(missingRights?.rows ?? [])
    },
    async close() {
      await readQueue.drain()
      await changePool[Symbol.asyncDispose]()
      await readPool[Symbol.asyncDispose]()
    },
  }
  return createStorage(driver, { queueChangesMax, translateError, ...observer })
}
