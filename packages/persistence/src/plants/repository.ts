import { int64Max, int64Min, type PlantRepository } from '@plant-store/domain'
import type { Runner } from '@plant-store/engine'
import type { PlantStatements } from './statements.ts'
import { fromPlant, fromVersion, newVersion, toPlant, toVersion } from './tables.ts'

/** @param statements of which `insert` and `save` add plants, announced or not */
export function createPlantRepository(
  { bind, submit, submitAll, read }: Runner,
  { find, page, pageOfTag, insert, save, saveIf, remove, removeIf }: PlantStatements,
): PlantRepository {
  return {
    async insert(plant) {
      return (await submit(insert, fromPlant(plant))) === 1 ? 'inserted' : 'id-taken'
    },
    async insertAll(plants) {
      const affectedRows = await submitAll(plants.map(plant => bind(insert, fromPlant(plant))))
      return affectedRows.map(rows => (rows === 1 ? 'inserted' : 'id-taken'))
    },
    async find(id) {
      const [row] = await read(find, { id })
      return row && { plant: toPlant(row), version: toVersion(row.version) }
    },
    async page({ limit, after, tag, textBytesMax = Number.MAX_SAFE_INTEGER }) {
      if (after === int64Max) return []
      const from = after === undefined ? int64Min : after + 1n
      const given = { from, limit, textBytesMax }
      const rows = await (tag === undefined ? read(page, given) : read(pageOfTag, { ...given, tag }))
      return rows.map(toPlant)
    },
    async save(plant) {
      const version = newVersion()
      await submit(save, fromPlant(plant, version))
      return toVersion(version)
    },
    async saveAll(plants) {
      const versions = plants.map(() => newVersion())
      await submitAll(plants.map((plant, n) => bind(save, fromPlant(plant, versions[n]))))
      return versions.map(toVersion)
    },
    async saveIf(plant, expected) {
      const version = newVersion()
      const row = fromPlant(plant, version)
      const saved = await (expected === undefined
        ? submit(insert, row)
        : submit(saveIf, { ...row, expected: fromVersion(expected) }))
      return saved === 1 ? toVersion(version) : undefined
    },
    async remove(id) {
      return (await submit(remove, { id })) === 1
    },
    async removeIf(id, expected) {
      return (await submit(removeIf, { id, expected: fromVersion(expected) })) === 1
    },
  }
}
