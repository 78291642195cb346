import type Database from 'better-sqlite3'
import { type CommitQueueLimits, createCommitQueue } from '../commit-queue.ts'
import { noChange, watchOutages } from '../outage.ts'
import { createRepositories, type StatementRunner } from '../repositories.ts'
import type { Statements } from '../statements.ts'
import type { CommitObserver, StateObserver, Storage } from '../storage.ts'
import type { SqliteLink } from '../storage-link.ts'
import type { PlantRow } from '../tables.ts'
import { openReader } from './connection.ts'
import { detailedReasonOf } from './reason.ts'
import { connectWriter, unavailable, type Writer } from './writer-thread.ts'

export function joinSqlite(
  { file, statements, writer, limits }: SqliteLink,
  { onCommit, onStateChange }: CommitObserver & StateObserver,
): Storage {
  const connected = connectWriter(writer, onCommit)
  return createStorage(openReader(file), statements.read, connected, limits, onStateChange)
}

export function createStorage(
  reader: Database.Database,
  statements: Statements['read'],
  writer: Writer,
  limits: CommitQueueLimits,
  onStateChange: StateObserver['onStateChange'],
): Storage {
  const check = async () => {
    const failure = writer.failure()
    if (failure !== undefined) throw unavailable('the store can not write', failure)
    await read('plant', 0n)
  }
  const checkAll = async () => {
    await check()
    await queue.write(noChange)
  }
  const outages = watchOutages(checkAll, onStateChange)
  const queue = createCommitQueue({
    commit: writes => writer.commit(writes).catch(outages.failed),
    commitsAtOnce: Number.POSITIVE_INFINITY,
    limits,
  })
  const prepared = Object.fromEntries(
    Object.entries(statements).map(([name, sql]) => [name, reader.prepare(sql)]),
  ) as Record<keyof Statements['read'], Database.Statement>
  const reading = <Result>(work: () => Result): Result => {
    try {
      return work()
    } catch (cause) {
      return outages.failed(unavailable('the store could not be read', detailedReasonOf(cause)))
    }
  }
  const read: StatementRunner['read'] = async <Row>(
    name: keyof Statements['read'],
    ...parameters: unknown[]
  ) => reading(() => prepared[name].all(...parameters) as Row[])
  const readPage: StatementRunner['readPage'] = async (name, textBytesMax, ...parameters) =>
    reading(() => {
      const rows: PlantRow[] = []
      let bytes = 0
      for (const row of prepared[name].iterate(...parameters) as Iterable<PlantRow>) {
        rows.push(row)
        bytes += Buffer.byteLength(row.name) + Buffer.byteLength(row.tag ?? '')
        if (bytes >= textBytesMax) break
      }
      return rows
    })

  return {
    ...createRepositories({ write: queue.write, read, readPage }),
    check,
    waiting: queue.waiting,
    async [Symbol.asyncDispose]() {
      outages.end()
      await queue.drained()
      writer.close()
      reader.close()
    },
  }
}
