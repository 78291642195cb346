import type { Plant } from '@plant-store/domain'
import type { ColumnType } from '@plant-store/engine'
import { newVersion } from '../versions.ts'

export interface PlantRow {
  id: bigint
  name: string
  tag: string | null
}

export interface VersionedRow extends PlantRow {
  version: bigint
}

/** The columns of a plant. Omitting one is a compile error. */
export const plantColumns: Readonly<Record<keyof PlantRow, ColumnType>> = {
  id: 'bigint',
  name: 'text',
  tag: 'text',
}

export function fromPlant(
  { id, name, tag }: Plant,
  version = newVersion(),
): VersionedRow {
  return { id, name, tag: tag ?? null, version }
}

/** Rows were parsed before they were written. */
export function toPlant({ id, name, tag }: PlantRow): Plant {
  return (tag === null ? { id, name } : { id, name, tag }) as Plant
}

/** Returns the plant of a row that has no other columns, mostly the row itself: a page has up to 1,000. */
export function plantOf(row: PlantRow): Plant {
  return row.tag === null ? toPlant(row) : (row as Plant)
}
