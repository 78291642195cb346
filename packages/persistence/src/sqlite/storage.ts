import { DomainError } from '@plant-store/domain'
import type Database from 'better-sqlite3'
import { type CommitQueueLimits, createCommitQueue } from '../commit-queue.ts'
import { createRepositories, type StatementRunner } from '../repositories.ts'
import type { Statements } from '../statements.ts'
import type { CommitObserver, Storage } from '../storage.ts'
import type { SqliteLink } from '../storage-link.ts'
import { openReader } from './connection.ts'
import { connectWriter, type Writer } from './writer-thread.ts'

export function joinSqlite(
  { file, statements, writer, limits }: SqliteLink,
  onCommit: CommitObserver['onCommit'],
): Storage {
  return createStorage(openReader(file), statements.read, connectWriter(writer, onCommit), limits)
}

export function createStorage(
  reader: Database.Database,
  statements: Statements['read'],
  writer: Writer,
  limits: CommitQueueLimits,
): Storage {
  const queue = createCommitQueue({ commit: writer.commit, commitsAtOnce: Number.POSITIVE_INFINITY, limits })
  const prepared = Object.fromEntries(
    Object.entries(statements).map(([name, sql]) => [name, reader.prepare(sql)]),
  ) as Record<keyof Statements['read'], Database.Statement>
  const read: StatementRunner['read'] = async <Row>(
    name: keyof Statements['read'],
    ...parameters: unknown[]
  ) => {
    try {
      return prepared[name].all(...parameters) as Row[]
    } catch (cause) {
      throw new DomainError('store-unavailable', 'the store could not be read', { cause })
    }
  }

  return {
    ...createRepositories({ write: queue.write, read }),
    async check() {
      const failure = writer.failure()
      if (failure !== undefined)
        throw new DomainError('store-unavailable', 'the store can not write', { cause: failure })
      await read('plant', 0n)
    },
    waiting: queue.waiting,
    async [Symbol.asyncDispose]() {
      await queue.drained()
      writer.close()
      reader.close()
    },
  }
}
