import type { TokenRepository } from '@plant-store/access'
import { type AddOptions, type PlantRepository, plantIdMax, plantIdMin } from '@plant-store/domain'
import type { Outbox, WebhookRepository } from '@plant-store/webhooks'
import type { Change, GroupCommit } from './group-commit.ts'
import type { Statements } from './shared-statements.ts'
import {
  fromPlant,
  fromToken,
  fromVersion,
  milliseconds,
  newVersion,
  type PlantRow,
  type TokenRow,
  toPlant,
  toToken,
  toVersion,
  type VersionedRow,
} from './tables.ts'
import { createWebhookRepositories } from './webhook-repositories.ts'

/** Runs statements. Rejects with DomainError `store-busy` or `store-unavailable`. */
export interface StatementRunner {
  readonly submit: GroupCommit['submit']
  readonly submitAll: GroupCommit['submitAll']
  read<Row extends object>(
    statement: keyof Statements['read'],
    ...parameters: unknown[]
  ): Promise<readonly Row[]>
  /** Ends with the row at which the texts reach this size in UTF-8. */
  readPage(
    statement: 'page' | 'pageOfTag',
    textBytesMax: number,
    ...parameters: unknown[]
  ): Promise<readonly PlantRow[]>
}

/** Returns the ports of the domain and of access, on the tables of any database. */
export function createRepositories({ submit, submitAll, read, readPage }: StatementRunner): {
  readonly plants: PlantRepository
  readonly tokens: TokenRepository
  readonly webhooks: WebhookRepository
  readonly outbox: Outbox
} {
  /** Submits changes together, without announcing if so asked. */
  const submitAdded = async (changes: readonly Change[], { announce = true }: AddOptions = {}) =>
    announce
      ? submitAll(changes)
      : (await submitAll([['beginSilence'], ...changes, ['endSilence']])).slice(1, -1)

  return {
    ...createWebhookRepositories({ submit, submitAll, read }),
    plants: {
      async insert(plant) {
        return (await submit(['insertPlant', ...fromPlant(plant)])) === 1 ? 'inserted' : 'id-taken'
      },
      async insertAll(plants, options) {
        const inserts = plants.map((plant): Change => ['insertPlant', ...fromPlant(plant)])
        const affectedRows = await submitAdded(inserts, options)
        return affectedRows.map(rows => (rows === 1 ? 'inserted' : 'id-taken'))
      },
      async find(id) {
        const [row] = await read<VersionedRow>('plant', id)
        return row && { plant: toPlant(row), version: toVersion(row.version) }
      },
      async page({ limit, after, tag, textBytesMax = Number.MAX_SAFE_INTEGER }) {
        if (after === plantIdMax) return []
        const from = after === undefined ? plantIdMin : after + 1n
        const rows = await (tag === undefined
          ? readPage('page', textBytesMax, from, limit)
          : readPage('pageOfTag', textBytesMax, tag, from, limit))
        return rows.map(toPlant)
      },
      async save(plant) {
        const version = newVersion()
        await submit(['savePlant', ...fromPlant(plant, version)])
        return toVersion(version)
      },
      async saveAll(plants, options) {
        const versions = plants.map(() => newVersion())
        const changes = plants.map((plant, n): Change => ['savePlant', ...fromPlant(plant, versions[n])])
        await submitAdded(changes, options)
        return versions.map(toVersion)
      },
      async saveIf(plant, expected) {
        const version = newVersion()
        const row = fromPlant(plant, version)
        const saved = await (expected === undefined
          ? submit(['insertPlant', ...row])
          : submit(['savePlantIf', ...row, fromVersion(expected)]))
        return saved === 1 ? toVersion(version) : undefined
      },
      async remove(id) {
        return (await submit(['removePlant', id])) === 1
      },
      async removeIf(id, expected) {
        return (await submit(['removePlantIf', id, fromVersion(expected)])) === 1
      },
    },
    tokens: {
      async find(hash) {
        const [row] = await read<TokenRow>('token', hash)
        return row && toToken(row)
      },
      async insert(token, hash) {
        return (await submit(['insertToken', ...fromToken(token, hash)])) === 1 ? 'inserted' : 'name-taken'
      },
      async list() {
        const rows = await read<TokenRow>('tokens')
        // Sorted here, as databases sort text differently.
        return [...rows].sort((a, b) => (a.name < b.name ? -1 : 1)).map(toToken)
      },
      async markUsed(hash, usedAt) {
        await submit(['markTokenUsed', hash, milliseconds(usedAt)])
      },
      async remove(name) {
        return (await submit(['removeToken', name])) === 1
      },
    },
  }
}
