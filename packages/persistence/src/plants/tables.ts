import type { Plant, Version } from '@plant-store/domain'
import type { ColumnTypes } from '@plant-store/engine'

export interface PlantRow {
  id: bigint
  name: string
  tag: string | null
}

export interface VersionedRow extends PlantRow {
  version: bigint
}

/** The type of each column, in the order of writing. Omitting one is a compile error. */
export const plantColumns = {
  id: 'bigint',
  name: 'text',
  tag: 'text',
} as const satisfies ColumnTypes<PlantRow>
export const plantNames = Object.keys(plantColumns) as readonly (keyof PlantRow)[]
export const versionedColumns = {
  ...plantColumns,
  version: 'bigint',
} as const satisfies ColumnTypes<VersionedRow>
export const versionedNames = Object.keys(versionedColumns) as readonly (keyof VersionedRow)[]

export function fromPlant({ id, name, tag }: Plant, version = newVersion()): VersionedRow {
  return { id, name, tag: tag ?? null, version }
}

/** Rows were parsed before they were written. */
export function toPlant({ id, name, tag }: PlantRow): Plant {
  return (tag === null ? { id, name } : { id, name, tag }) as Plant
}

const versions = new BigInt64Array(1_024)
let versionsLeft = 0

/** Returns 64 random bits, the version of one state of a plant (docs/decisions/0011-plant-versions.md). */
export function newVersion(): bigint {
  if (versionsLeft === 0) versionsLeft = crypto.getRandomValues(versions).length
  return versions[--versionsLeft] as bigint
}

export function toVersion(version: bigint): Version {
  return BigInt.asUintN(64, version).toString(16).padStart(16, '0') as Version
}

/** Returns `null`, which equals nothing in SQL, for a version that {@link toVersion} cannot have returned. */
export function fromVersion(version: Version): bigint | null {
  return /^[0-9a-f]{16}$/.test(version) ? BigInt.asIntN(64, BigInt(`0x${version}`)) : null
}
