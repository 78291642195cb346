import { refusal } from './errors.ts'

declare const plantId: unique symbol

/** A plant's identification number: a signed 64-bit integer, chosen by whoever adds the plant. */
export type PlantId = bigint & { readonly [plantId]: true }

export const plantIdMin = -(2n ** 63n)
export const plantIdMax = 2n ** 63n - 1n

/**
 * @param value a bigint from {@link plantIdMin} to {@link plantIdMax}. A JavaScript number is refused even when it
 *   looks whole: its digits may have been rounded before it came here.
 * @throws DomainError `invalid-plant-id`
 */
export function parsePlantId(value: unknown): PlantId {
  if (!isPlantId(value)) throw refusal('invalid-plant-id', [{ field: 'id', problem: plantIdProblem }])
  return value
}

export function isPlantId(value: unknown): value is PlantId {
  return typeof value === 'bigint' && value >= plantIdMin && value <= plantIdMax
}

export const plantIdProblem = `must be an integer from ${plantIdMin} to ${plantIdMax}`
