import type { TokenRepository } from '@plant-store/access'
import { DomainError, type PlantRepository, plantIdMax, plantIdMin } from '@plant-store/domain'
import type Database from 'better-sqlite3'
import { type CommitQueueLimits, createCommitQueue } from '../commit-queue.ts'
import type { Statements } from '../statements.ts'
import type { CommitObserver, Storage } from '../storage.ts'
import type { SqliteLink } from '../storage-link.ts'
import {
  fromPlant,
  fromToken,
  milliseconds,
  type PlantRow,
  type TokenRow,
  toPlant,
  toToken,
} from '../tables.ts'
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
  const prepare = <Row>(sql: string) => {
    const statement = reader.prepare(sql)
    return {
      one: (...parameters: unknown[]) => reading(() => statement.get(...parameters) as Row | undefined),
      all: (...parameters: unknown[]) => reading(() => statement.all(...parameters) as Row[]),
    }
  }
  const plant = prepare<PlantRow>(statements.plant)
  const page = prepare<PlantRow>(statements.page)
  const pageOfTag = prepare<PlantRow>(statements.pageOfTag)
  const token = prepare<TokenRow>(statements.token)
  const allTokens = prepare<TokenRow>(statements.tokens)

  const plants: PlantRepository = {
    async insert(plant) {
      return (await queue.write(['insertPlant', ...fromPlant(plant)])) === 1 ? 'inserted' : 'id-taken'
    },
    async find(id) {
      const row = plant.one(id)
      return row && toPlant(row)
    },
    async page({ limit, after, tag }) {
      if (after === plantIdMax) return []
      const from = after === undefined ? plantIdMin : after + 1n
      const rows = tag === undefined ? page.all(from, limit) : pageOfTag.all(tag, from, limit)
      return rows.map(toPlant)
    },
    async save(plant) {
      await queue.write(['savePlant', ...fromPlant(plant)])
    },
    async remove(id) {
      return (await queue.write(['removePlant', id])) === 1
    },
  }
  const tokens: TokenRepository = {
    async find(hash) {
      const row = token.one(hash)
      return row && toToken(row)
    },
    async insert(token, hash) {
      return (await queue.write(['insertToken', ...fromToken(token, hash)])) === 1 ? 'inserted' : 'name-taken'
    },
    async list() {
      return allTokens.all().map(toToken)
    },
    async markUsed(hash, usedAt) {
      await queue.write(['markTokenUsed', hash, milliseconds(usedAt)])
    },
    async remove(name) {
      return (await queue.write(['removeToken', name])) === 1
    },
  }

  return {
    plants,
    tokens,
    async check() {
      const failure = writer.failure()
      if (failure !== undefined)
        throw new DomainError('store-unavailable', 'the store can not write', { cause: failure })
      plant.one(0n)
    },
    waiting: queue.waiting,
    async [Symbol.asyncDispose]() {
      await queue.drained()
      writer.close()
      reader.close()
    },
  }
}

function reading<Result>(read: () => Result): Result {
  try {
    return read()
  } catch (cause) {
    throw new DomainError('store-unavailable', 'the store could not be read', { cause })
  }
}
