import type { Plant } from '@plant-store/domain'
import type { ColumnsOf } from '@plant-store/engine'
import { newVersion } from '../versions.ts'

/** Has a column for each member of a plant. Omitting one is a compile error below. */
export interface PlantRow extends Record<keyof Plant, unknown> {
  id: bigint
  name: string
  tag: string | null
}

export interface VersionedRow extends PlantRow {
  version: bigint
}

/** The type of each column. */
export const plantColumns: ColumnsOf<PlantRow> = {
  id: 'bigint',
  name: 'text',
  tag: 'text',
}

/** Returns the row of a plant, with a new version. */
export function withNewVersion({ id, name, tag }: Plant): VersionedRow {
  return { id, name, tag: tag ?? null, version: newVersion() }
}

/** Returns the plant of a row. */
export function toPlant({ id, name, tag }: PlantRow): Plant {
  const plant = tag === null ? { id, name } : { id, name, tag }
  // Every plant was parsed before its row was written.
  return plant as Plant
}

/**
 * Returns the plant of a row that has no other columns. It is the row itself unless the
 * tag is null, because a page has up to 1,000 rows.
 */
export function plantInPlace(row: PlantRow): Plant {
  // Every plant was parsed before its row was written.
  return row.tag === null ? toPlant(row) : (row as Plant)
}
