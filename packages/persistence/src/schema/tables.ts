import type { Plant, PlantVersion } from '@plant-store/domain'

/**
 * The columns that Kysely's queries name. The other statements are SQL (`repositories/`). 64-bit integers are bigint.
 */
export interface Tables {
  access_tokens: { name: string }
  schema_version: { version: number }
}

export interface PlantRow {
  id: bigint
  name: string
  tag: string | null
}

export interface VersionedRow extends PlantRow {
  version: bigint
}

/**
 * The type of each column on PostgreSQL, in the order of writing. A column of a plant has the name of its member.
 * Omitting one is a compile error.
 */
export const typeOf: Readonly<Record<keyof VersionedRow, 'bigint' | 'text'>> = {
  id: 'bigint',
  name: 'text',
  tag: 'text',
  version: 'bigint',
} satisfies Record<keyof Plant | 'version', 'bigint' | 'text'>

export const rowColumns = Object.keys(typeOf) as readonly (keyof VersionedRow)[]
/** Without the version. */
export const plantColumns = rowColumns.filter(column => column !== 'version')
const textColumns = plantColumns.filter(column => typeOf[column] === 'text')

/** The length of a plant's texts in UTF-8, which both databases know without reading them. */
export const textBytesInSql = textColumns.map(column => `coalesce(octet_length("${column}"), 0)`).join(' + ')

/** Returns the length of a plant's texts in UTF-8. */
export function textBytesOf(row: PlantRow): number {
  return textColumns.reduce((bytes, column) => bytes + Buffer.byteLength(`${row[column] ?? ''}`), 0)
}

/** @param found the columns of the table; an earlier version has fewer */
export function selectPlants(found: readonly string[]): string {
  const columns = plantColumns.map(column => (found.includes(column) ? `"${column}"` : `null as "${column}"`))
  return `select ${columns.join(', ')} from plants`
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

export const milliseconds = (date: Date) => BigInt(date.getTime())
export const toDate = (milliseconds: bigint) => new Date(Number(milliseconds))
