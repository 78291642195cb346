import { type Fault, refusal } from './errors.ts'
import { isPlantId, type PlantId, plantIdProblem } from './plant-id.ts'

declare const plantText: unique symbol

/**
 * Text that every store can keep faithfully: Unicode without lone surrogates and without U+0000.
 * It may be empty, of any length, and is never trimmed or normalised.
 */
export type PlantText = string & { readonly [plantText]: true }

export interface Plant {
  readonly id: PlantId
  readonly name: PlantText
  /** Says what type of plant it is; absent (never `undefined`) when none was given. */
  readonly tag?: PlantText
}

/**
 * The only way to a Plant. Members that a plant doesn't have are left out.
 *
 * @param input an object with `id`, `name` and perhaps `tag`, as {@link Plant} has them.
 * @param id where the id is known from elsewhere (a path): `input.id` may then be missing, and must otherwise be equal.
 * @throws DomainError `invalid-plant`, with every fault at once
 */
export function parsePlant(input: unknown, id?: PlantId): Plant {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    throw refusal('invalid-plant', [{ field: 'plant', problem: 'must be an object' }])
  }
  const given = { id: member(input, 'id'), name: member(input, 'name'), tag: member(input, 'tag') }
  const plant = { id: given.id === undefined ? id : given.id, name: given.name }

  const faults: Fault[] = []
  const report = (field: string, problem: string | undefined) => {
    if (problem !== undefined) faults.push({ field, problem })
  }
  report('id', idProblem(plant.id, id))
  report('name', textProblem(plant.name))
  if (given.tag !== undefined) report('tag', textProblem(given.tag))
  if (faults.length > 0) throw refusal('invalid-plant', faults)

  return (given.tag === undefined ? plant : { ...plant, tag: given.tag }) as Plant
}

/** What keeps a value from being a {@link PlantText}; `undefined` when nothing does. */
export function textProblem(value: unknown): string | undefined {
  if (value === undefined) return 'is required'
  if (typeof value !== 'string') return 'must be a string'
  if (!value.isWellFormed()) return 'must be Unicode text: it has a lone surrogate'
  if (value.includes('\0')) return 'must not contain U+0000'
  return undefined
}

function idProblem(value: unknown, expected: PlantId | undefined): string | undefined {
  if (value === undefined) return 'is required'
  if (!isPlantId(value)) return plantIdProblem
  if (expected !== undefined && value !== expected)
    return `must be ${expected}, the id of the plant it is for`
  return undefined
}

/** Own members only: nothing is read from a prototype that a sender could have named. */
function member(input: object, name: string): unknown {
  return Object.hasOwn(input, name) ? (input as Record<string, unknown>)[name] : undefined
}
