import assert from 'node:assert/strict'
import { type Plant, type PlantId, parsePlant, parsePlantId } from '../../plants/plant.ts'

export function plant(id: bigint, name = `plant ${id}`, tag?: string): Plant {
  return parsePlant({ id, name, tag })
}

export function plantId(id: bigint): PlantId {
  return parsePlantId(id)
}

/** Returns a plant with this many bytes of text in the member that has room for them. */
export function longPlant(id: bigint, bytes: number): Plant {
  return plant(id, 'long', 'x'.repeat(bytes))
}

/**
 * Returns a plant with every member, and this text in each. Omitting one is a compile
 * error.
 */
export function fullPlant(id: bigint, text: string): Required<Plant> {
  const members: { readonly [Member in keyof Required<Plant>]: unknown } = {
    id,
    name: text,
    tag: text,
  }
  const plant = parsePlant(members)
  assert.deepEqual(Object.keys(plant), Object.keys(members), 'it keeps every member')
  // The assertion has compared the members.
  return plant as Required<Plant>
}

export function idsOf(plants: readonly Plant[]): bigint[] {
  return plants.map(({ id }) => id)
}
