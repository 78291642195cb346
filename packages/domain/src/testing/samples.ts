import assert from 'node:assert/strict'
import { type Plant, parsePlant } from '../plants/plant.ts'
import { int64Max, int64Min } from '../values.ts'

export const plant = (id: bigint, name = `plant ${id}`, tag?: string): Plant => parsePlant({ id, name, tag })
/** Returns a plant with this many bytes of text in the member that has room for them. */
export const longPlant = (id: bigint, bytes: number): Plant => plant(id, 'long', 'x'.repeat(bytes))
/** Returns a plant with every member, with this text in each. Omitting one is a compile error. */
export function fullPlant(id: bigint, text: string): Required<Plant> {
  const members: { readonly [Member in keyof Required<Plant>]: unknown } = { id, name: text, tag: text }
  const plant = parsePlant(members)
  assert.deepEqual(Object.keys(plant), Object.keys(members), 'parsePlant keeps every member')
  return plant as Required<Plant>
}
export const idsOf = (plants: readonly Plant[]) => plants.map(({ id }) => id as bigint)

/** Ids at which a 53-bit, 32-bit, unsigned or textual representation fails, in numeric order. */
export const edgeIds = [
  int64Min,
  int64Min + 1n,
  -(2n ** 53n) - 1n,
  -(2n ** 31n) - 1n,
  -10n,
  -9n,
  -1n,
  0n,
  1n,
  9n,
  10n,
  2n ** 31n,
  2n ** 32n,
  2n ** 53n - 1n,
  2n ** 53n,
  2n ** 53n + 1n,
  2n ** 53n + 2n,
  int64Max - 1n,
  int64Max,
]

export const texts = [
  '',
  ' ',
  '  leading and trailing\t\n',
  'Übergrößenträger',
  'e\u0301 is not \u00e9',
  '\u{1f331}\u{1f468}\u200d\u{1f33e} 𠮷 \u{10ffff}',
  '\u0001\u001f\u007f\u0085\u2028\u2029\ufeff\ufffd\uffff',
  'אבג \u202e العربية ไทย 漢字',
  `'; DROP TABLE plants; -- %_\\"`,
  'null',
  '0',
  'x'.repeat(100_000),
]
