import {
  int64Max,
  int64Min,
  type PlantId,
  type PlantPageQuery,
  type PlantRepository,
  type PlantSearch,
  textBytes,
} from '@plant-store/domain'
import type { Runner } from '@plant-store/engine'
import { fromVersion, newVersion, toVersion } from '../versions.ts'
import type { PlantStatements } from './statements.ts'
import { fromPlant, plantOf, toPlant, type VersionedRow } from './tables.ts'

/** The bytes of the names that a search looks at, unless a single one has more. */
const searchedBytesMax = 256 * 1024

interface Stop {
  readonly last: PlantId
  /** Whether the list ends there. */
  readonly isEnd: boolean
}

export function createPlantRepository(
  { bind, submit, submitAll, read }: Runner,
  statements: PlantStatements,
): PlantRepository {
  const { find, insert, save, saveIf, remove, removeIf } = statements
  const { pageOfTag, countedOfTag, spanOfTag, searchOfTag } = statements
  const ofTag = {
    page: pageOfTag,
    counted: countedOfTag,
    span: spanOfTag,
    search: searchOfTag,
  }
  const listOf = ({ tag }: PlantPageQuery) => (tag === undefined ? statements : ofTag)

  /** Returns where a search stops, or `undefined` if there is nothing to look at. */
  const stopOf = async (
    query: PlantSearch,
    limit = query.lookAtMax,
  ): Promise<Stop | undefined> => {
    const [found] = await read(listOf(query).span, { ...boundsOf(query), limit })
    if (typeof found?.last !== 'bigint') {
      return undefined
    }
    if (limit > 1 && Number(found.bytes) > searchedBytesMax) {
      return stopOf(query, Math.floor(limit / 2))
    }
    // A row was parsed before it was written.
    return { last: found.last as PlantId, isEnd: found.count < limit }
  }

  return {
    insert: plant => submit(insert, fromPlant(plant)).then(outcomeOf),
    async insertAll(plants) {
      const affectedRows = await submitAll(
        plants.map(plant => bind(insert, fromPlant(plant))),
      )
      return affectedRows.map(outcomeOf)
    },
    find: id => read(find, { id }).then(versionedOf),
    async page(query) {
      if (query.after === int64Max) {
        return []
      }
      return (await read(listOf(query).page, boundsOf(query))).map(plantOf)
    },
    async pageCounted(query) {
      const { counted } = listOf(query)
      const given = { ...boundsOf(query), countMax: query.countMax }
      const rows = query.after === int64Max ? [] : await read(counted, given)
      const isEnd = rows.length === 0 && query.after !== undefined
      // The end of a list does not say how many plants are before it.
      const [first] = isEnd
        ? await read(counted, { ...given, from: int64Min, limit: 1 })
        : rows
      return { plants: rows.map(toPlant), total: Number(first?.total ?? 0) }
    },
    async search(query) {
      const stop = query.after === int64Max ? undefined : await stopOf(query)
      if (stop === undefined) {
        return { plants: [] }
      }
      const given = {
        ...boundsOf(query),
        name_contains: query.name_contains,
        to: stop.last,
      }
      const plants = (await read(listOf(query).search, given)).map(toPlant)
      const bytes = plants.reduce((sum, plant) => sum + textBytes(plant), 0)
      const isCut = plants.length === given.limit || bytes >= given.textBytesMax
      const next = (isCut ? plants.at(-1)?.id : undefined) ?? stop.last
      return next === stop.last && stop.isEnd ? { plants } : { plants, next }
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

const outcomeOf = (affectedRows: number) => (affectedRows === 1 ? 'inserted' : 'id-taken')

const versionedOf = ([row]: readonly VersionedRow[]) =>
  row && { plant: toPlant(row), version: toVersion(row.version) }

/** What the statements of a page are given. */
function boundsOf({
  limit,
  after,
  tag,
  textBytesMax = Number.MAX_SAFE_INTEGER,
}: PlantPageQuery) {
  return { from: after === undefined ? int64Min : after + 1n, limit, tag, textBytesMax }
}
