import { type AddOptions, plantIdMax, plantIdMin } from '@plant-store/domain'
import {
  fromPlant,
  fromToken,
  fromVersion,
  milliseconds,
  newVersion,
  toPlant,
  toToken,
  toVersion,
} from '../schema/tables.ts'
import type { Storage } from '../storage.ts'
import type { Change, Statement, StatementRunner, Value } from './statements.ts'
import { createWebhookRepositories } from './webhook-repositories.ts'

/** Returns the ports on the tables of any database. */
export function createRepositories(
  runner: StatementRunner,
): Pick<Storage, 'plants' | 'tokens' | 'webhooks' | 'outbox'> {
  const { change, submit, submitAll, read, readPage } = runner
  /** Submits changes together, without announcing if so asked. */
  const submitAdded = async (changes: readonly Change[], { announce = true }: AddOptions = {}) =>
    announce
      ? submitAll(changes)
      : (await submitAll([change('beginSilence'), ...changes, change('endSilence')])).slice(1, -1)

  return {
    ...createWebhookRepositories(runner),
    plants: {
      async insert(plant) {
        return (await submit(change('insertPlant', fromPlant(plant)))) === 1 ? 'inserted' : 'id-taken'
      },
      async insertAll(plants, options) {
        const inserts = plants.map(plant => change('insertPlant', fromPlant(plant)))
        const affectedRows = await submitAdded(inserts, options)
        return affectedRows.map(rows => (rows === 1 ? 'inserted' : 'id-taken'))
      },
      async find(id) {
        const [row] = await read('plant', { id })
        return row && { plant: toPlant(row), version: toVersion(row.version) }
      },
      async page({ limit, after, tag, textBytesMax = Number.MAX_SAFE_INTEGER }) {
        if (after === plantIdMax) return []
        const from = after === undefined ? plantIdMin : after + 1n
        const rows = await (tag === undefined
          ? readPage('page', textBytesMax, { from, limit })
          : readPage('pageOfTag', textBytesMax, { tag, from, limit }))
        return rows.map(toPlant)
      },
      async save(plant) {
        const version = newVersion()
        await submit(change('savePlant', fromPlant(plant, version)))
        return toVersion(version)
      },
      async saveAll(plants, options) {
        const versions = plants.map(() => newVersion())
        const changes = plants.map((plant, n) => change('savePlant', fromPlant(plant, versions[n])))
        await submitAdded(changes, options)
        return versions.map(toVersion)
      },
      async saveIf(plant, expected) {
        const version = newVersion()
        const row = fromPlant(plant, version)
        const saved = await (expected === undefined
          ? submit(change('insertPlant', row))
          : submit(change('savePlantIf', { ...row, expected: fromVersion(expected) })))
        return saved === 1 ? toVersion(version) : undefined
      },
      async remove(id) {
        return (await submit(change('removePlant', { id }))) === 1
      },
      async removeIf(id, expected) {
        return (await submit(change('removePlantIf', { id, expected: fromVersion(expected) }))) === 1
      },
    },
    tokens: {
      async find(hash) {
        const [row] = await read('token', { hash })
        return row && toToken(row)
      },
      async insert(token, hash) {
        return (await submit(change('insertToken', fromToken(token, hash)))) === 1 ? 'inserted' : 'name-taken'
      },
      async list() {
        const rows = await read('tokens')
        // Sorted here, as databases sort text differently.
        return [...rows].sort((a, b) => (a.name < b.name ? -1 : 1)).map(toToken)
      },
      async markUsed(hash, usedAt) {
        await submit(change('markTokenUsed', { hash, usedAt: milliseconds(usedAt) }))
      },
      async remove(name) {
        return (await submit(change('removeToken', { name }))) === 1
      },
    },
  }
}

/** Returns the values of a statement's parameters in the order of its placeholders. */
export function valuesOf({ parameters }: Statement, given?: object): Value[] {
  return parameters.map(name => (given as Record<string, Value>)[name] as Value)
}
