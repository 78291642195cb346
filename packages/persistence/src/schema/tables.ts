import type { Plant } from '@plant-store/domain'

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

export const milliseconds = (date: Date) => BigInt(date.getTime())
export const toDate = (milliseconds: bigint) => new Date(Number(milliseconds))
