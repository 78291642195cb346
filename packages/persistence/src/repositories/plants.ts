import {
  type AddOptions,
  type Plant,
  type PlantRepository,
  type PlantVersion,
  plantIdMax,
  plantIdMin,
} from '@plant-store/domain'
import { type RawBuilder, sql } from 'kysely'
import { columnList, type Dialect } from '../schema/dialect.ts'
import {
  type PlantRow,
  plantColumns,
  rowColumns,
  textBytesInSql,
  type VersionedRow,
} from '../schema/tables.ts'
import type { StatementRunner } from './statements.ts'

export interface Page {
  /** The least id. */
  readonly from: bigint
  readonly limit: number
}

type PageOfTag = Page & { readonly tag: string }
type OfPlant = Pick<PlantRow, 'id'>
/** `null` equals no version. */
type Expected = { readonly expected: bigint | null }

const allColumns = columnList(rowColumns)

export function plantReads({ hasTag }: Dialect) {
  const page = (selected: RawBuilder<unknown>, { from, limit }: Page) =>
    sql<PlantRow>`select ${selected} from plants where id >= ${from} order by id limit ${limit}`
  const pageOfTag = (selected: RawBuilder<unknown>, { tag, from, limit }: PageOfTag) => sql<PlantRow>`
    select ${selected} from plants where ${hasTag(tag)} and id >= ${from} order by id limit ${limit}`
  const bytes = sql`${sql.raw(textBytesInSql)} as bytes`
  const sumOf = (page: RawBuilder<unknown>) => sql<{ bytes: bigint | null }>`
    select sum(bytes) as bytes from (${page}) as page`

  return {
    plant: ({ id }: OfPlant) => sql<VersionedRow>`select ${allColumns} from plants where id = ${id}`,
    page: (given: Page) => page(columnList(plantColumns), given),
    pageOfTag: (given: PageOfTag) => pageOfTag(columnList(plantColumns), given),
    /** The size of the texts of `page` and `pageOfTag`, which SQLite knows without reading them. */
    pageBytes: (given: Page) => sumOf(page(bytes, given)),
    pageOfTagBytes: (given: PageOfTag) => sumOf(pageOfTag(bytes, given)),
  }
}

const oneRow = (row: VersionedRow) => sql`values (${sql.join(rowColumns.map(column => row[column]))})`

/** @param rows what an insert adds, from its parameters */
export function plantChanges(
  { announce }: Dialect,
  rows: (row: VersionedRow) => RawBuilder<unknown> = oneRow,
) {
  const insert = (row: VersionedRow) => sql`insert into plants (${allColumns}) ${rows(row)}`
  /** An assignment to each column but the key. */
  const assigned = (valued: (column: keyof VersionedRow) => RawBuilder<unknown>) =>
    sql.join(
      rowColumns.filter(column => column !== 'id').map(column => sql`${sql.ref(column)} = ${valued(column)}`),
    )
  const insertIfAbsent = (row: VersionedRow) => sql`${insert(row)} on conflict do nothing`
  const upsert = (row: VersionedRow) => sql`
    ${insert(row)} on conflict (id) do update set ${assigned(column => sql.ref(`excluded.${column}`))}`

  return {
    insertPlant: (row: VersionedRow) => announce(insertIfAbsent(row), row),
    insertPlantSilently: insertIfAbsent,
    savePlant: (row: VersionedRow) => announce(upsert(row), row),
    savePlantSilently: upsert,
    savePlantIf: (row: VersionedRow & Expected) => sql`
      update plants set ${assigned(column => sql`${row[column]}`)}
      where id = ${row.id} and version = ${row.expected}`,
    removePlant: ({ id }: OfPlant) => sql`delete from plants where id = ${id}`,
    removePlantIf: ({ id, expected }: OfPlant & Expected) => sql`
      delete from plants where id = ${id} and version = ${expected}`,
  }
}

type PlantReads = ReturnType<typeof plantReads>
type PlantChanges = ReturnType<typeof plantChanges>

export interface PageReader {
  /** Ends with the row at which the texts reach this size in UTF-8. */
  readPage<Name extends 'page' | 'pageOfTag'>(
    name: Name,
    given: Parameters<PlantReads[Name]>[0],
    textBytesMax: number,
  ): Promise<readonly PlantRow[]>
}

export function createPlantRepository({
  changeOf,
  submit,
  submitAll,
  read,
  readPage,
}: StatementRunner<PlantReads, PlantChanges> & PageReader): PlantRepository {
  return {
    async insert(plant) {
      return (await submit(changeOf('insertPlant', fromPlant(plant)))) === 1 ? 'inserted' : 'id-taken'
    },
    async insertAll(plants, { announce = true }: AddOptions = {}) {
      const insert = announce ? 'insertPlant' : 'insertPlantSilently'
      const affectedRows = await submitAll(plants.map(plant => changeOf(insert, fromPlant(plant))))
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
        ? readPage('page', { from, limit }, textBytesMax)
        : readPage('pageOfTag', { tag, from, limit }, textBytesMax))
      return rows.map(toPlant)
    },
    async save(plant) {
      const version = newVersion()
      await submit(changeOf('savePlant', fromPlant(plant, version)))
      return toVersion(version)
    },
    async saveAll(plants, { announce = true }: AddOptions = {}) {
      const save = announce ? 'savePlant' : 'savePlantSilently'
      const versions = plants.map(() => newVersion())
      await submitAll(plants.map((plant, n) => changeOf(save, fromPlant(plant, versions[n]))))
      return versions.map(toVersion)
    },
    async saveIf(plant, expected) {
      const version = newVersion()
      const row = fromPlant(plant, version)
      const saved = await (expected === undefined
        ? submit(changeOf('insertPlant', row))
        : submit(changeOf('savePlantIf', { ...row, expected: fromVersion(expected) })))
      return saved === 1 ? toVersion(version) : undefined
    },
    async remove(id) {
      return (await submit(changeOf('removePlant', { id }))) === 1
    },
    async removeIf(id, expected) {
      return (await submit(changeOf('removePlantIf', { id, expected: fromVersion(expected) }))) === 1
    },
  }
}

export function fromPlant({ id, name, tag }: Plant, version = newVersion()): VersionedRow {
  return { id, name, tag: tag ?? null, version }
}

const versions = new BigInt64Array(1_024)
let versionsLeft = 0

/** Returns 64 random bits, the version of one state of a plant (docs/decisions/0011-plant-versions.md). */
export function newVersion(): bigint {
  if (versionsLeft === 0) versionsLeft = crypto.getRandomValues(versions).length
  return versions[--versionsLeft] as bigint
}

export function toVersion(version: bigint): PlantVersion {
  return BigInt.asUintN(64, version).toString(16).padStart(16, '0') as PlantVersion
}

/** Returns `null`, which equals nothing in SQL, for a version that {@link toVersion} cannot have returned. */
export function fromVersion(version: PlantVersion): bigint | null {
  return /^[0-9a-f]{16}$/.test(version) ? BigInt.asIntN(64, BigInt(`0x${version}`)) : null
}

/** Rows were parsed before they were written. */
export function toPlant({ id, name, tag }: PlantRow): Plant {
  return (tag === null ? { id, name } : { id, name, tag }) as Plant
}
