import { type Problems, refusal } from '../errors.ts'
import {
  type Int64,
  idProblem,
  isFaultless,
  isRecord,
  member,
  optionalTextProblem,
  parseId,
  textProblem,
  type UnicodeText,
} from '../values.ts'
import type { Version } from '../version.ts'

declare const plantIdBrand: unique symbol

/** A signed 64-bit integer that the plant's creator chooses. */
export type PlantId = Int64 & { readonly [plantIdBrand]: true }

export interface Plant {
  readonly id: PlantId
  readonly name: UnicodeText
  /** The plant's type. Absent (never `undefined`) if none was given. */
  readonly tag?: UnicodeText
}

export interface VersionedPlant {
  readonly plant: Plant
  readonly version: Version
}

/** The outcome of saving a plant. */
export interface SavedPlant {
  readonly version: Version
  /** Whether it is new. Otherwise it replaced the plant with this id. */
  readonly created: boolean
}

/**
 * The members of a plant in their order, with the kind of each. Omitting one is a compile
 * error.
 */
export const plantMembers: {
  readonly [Member in keyof Required<Plant>]: {
    readonly type: 'integer' | 'text'
    readonly isRequired: boolean
  }
} = {
  id: { type: 'integer', isRequired: true },
  name: { type: 'text', isRequired: true },
  tag: { type: 'text', isRequired: false },
}

/**
 * Returns the plant in an unknown value. This is the only way from outside to a
 * {@link Plant}. Ignores members that a plant does not have.
 *
 * @param input an object with the members of a plant
 * @param id the id of the plant, if that is known: `input.id` may then be missing, and
 *   must otherwise equal it
 * @throws DomainError `invalid-plant` with every fault
 */
export function parsePlant(input: unknown, id?: PlantId): Plant {
  if (!isRecord(input)) {
    throw refusal('invalid-plant', { plant: 'must be an object' })
  }
  const idInInput = member(input, 'id')
  const plantId = idInInput === undefined ? id : idInInput
  const name = member(input, 'name')
  const tag = member(input, 'tag')

  const problems: Problems<keyof Plant> = {
    id: idProblem(plantId, id),
    name: textProblem(name),
    tag: optionalTextProblem(tag),
  }
  if (!isFaultless(problems)) {
    throw refusal('invalid-plant', problems)
  }

  const plant = tag === undefined ? { id: plantId, name } : { id: plantId, name, tag }
  // None of its members has a problem.
  return plant as Plant
}

/** Returns the plant id in an unknown value, by {@link parseId}. */
export const parsePlantId: (value: unknown) => PlantId = parseId
