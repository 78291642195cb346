import assert from 'node:assert/strict'
import { type Plant, parsePlant } from '../../plants/plant.ts'

export const plant = (id: bigint, name = `plant ${id}`, tag?: string): Plant =>
  parsePlant({ id, name, tag })
/** Returns a plant with this many bytes of text in the member that has room for them. */
export const longPlant = (id: bigint, bytes: number): Plant =>
  plant(id, 'long', 'x'.repeat(bytes))
/** Returns a plant with every member, with this text in each. Omitting one is a compile error. */
export function fullPlant(id: bigint, text: string): Required<Plant> {
  const members: { readonly [Member in keyof Required<Plant>]: unknown } = {
    id,
    name: text,
    tag: text,
  }
  const plant = parsePlant(members)
  assert.deepEqual(
    Object.keys(plant),
    Object.keys(members),
    'parsePlant keeps every member',
  )
  return plant as Required<Plant>
}
export const idsOf = (plants: readonly Plant[]) => plants.map(({ id }) => id as bigint)
