import { type Problems, refusal } from './errors.ts'

declare const plantId: unique symbol
declare const plantText: unique symbol

/** A signed 64-bit integer that the plant's creator chooses. */
export type PlantId = bigint & { readonly [plantId]: true }

export const plantIdMin = -(2n ** 63n)
export const plantIdMax = 2n ** 63n - 1n

/**
 * Unicode text without lone surrogates and U+0000, which every store can keep unchanged. It may be empty, has no length
 * limit, and is never trimmed or normalised.
 */
export type PlantText = string & { readonly [plantText]: true }

export interface Plant {
  readonly id: PlantId
  readonly name: PlantText
  /** The plant's type. Absent (never `undefined`) if none was given. */
  readonly tag?: PlantText
}

/** What each member of a plant holds, in their order. Omitting one is a compile error. */
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
 * Returns the plant in an unknown value, the only way to a {@link Plant}. Ignores members that a plant does not have.
 *
 * @param input an object with the members of a plant
 * @param id the id from elsewhere, such as a path: `input.id` may then be missing, and must otherwise equal it
 * @throws DomainError `invalid-plant` with every fault
 */
export function parsePlant(input: unknown, id?: PlantId): Plant {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    throw refusal('invalid-plant', { plant: 'must be an object' })
  }
  const given = member(input, 'id')
  const plantId = given === undefined ? id : given
  const name = member(input, 'name')
  const tag = member(input, 'tag')

  const problems: Problems<keyof Plant> = {
    id: idProblem(plantId, id),
    name: textProblem(name),
    tag: tag === undefined ? undefined : textProblem(tag),
  }
  if (Object.values(problems).some(Boolean)) throw refusal('invalid-plant', problems)
  return (tag === undefined ? { id: plantId, name } : { id: plantId, name, tag }) as Plant
}

/**
 * Returns the plant id in an unknown value.
 *
 * @param value a bigint from {@link plantIdMin} to {@link plantIdMax}; a JavaScript number is refused, as it may have
 *   been rounded
 * @throws DomainError `invalid-plant-id`
 */
export function parsePlantId(value: unknown): PlantId {
  if (!isPlantId(value)) throw refusal('invalid-plant-id', { id: plantIdProblem })
  return value
}

export function isPlantId(value: unknown): value is PlantId {
  return typeof value === 'bigint' && value >= plantIdMin && value <= plantIdMax
}

export const plantIdProblem = `must be an integer from ${plantIdMin} to ${plantIdMax}`

/** Returns why the value is not a {@link PlantText}, or `undefined` if it is one. */
export function textProblem(value: unknown): string | undefined {
  if (value === undefined) return 'is required'
  if (typeof value !== 'string') return 'must be a string'
  if (!value.isWellFormed()) return 'must be Unicode text without lone surrogates'
  if (value.includes('\0')) return 'must not contain U+0000'
  return undefined
}

export function isSamePlant(a: Plant, b: Plant): boolean {
  const members = Object.keys({ ...a, ...b }) as (keyof Plant)[]
  return members.every(member => a[member] === b[member])
}

/** Returns the length of a plant's texts in UTF-8. */
export function textBytes(plant: Plant): number {
  let bytes = 0
  for (const value of Object.values(plant)) if (typeof value === 'string') bytes += utf8Bytes(value)
  return bytes
}

function utf8Bytes(text: string): number {
  let bytes = text.length
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    // Each half of a surrogate pair counts two of its four bytes.
    if (unit > 0x7f) bytes += unit > 0x7ff && (unit < 0xd800 || unit > 0xdfff) ? 2 : 1
  }
  return bytes
}

function idProblem(value: unknown, expected: PlantId | undefined): string | undefined {
  if (value === undefined) return 'is required'
  if (!isPlantId(value)) return plantIdProblem
  if (expected !== undefined && value !== expected) return `must equal ${expected}, the id in the path`
  return undefined
}

/** Returns an own member: a sender must not be able to name an inherited one. */
function member(input: object, name: string): unknown {
  return Object.hasOwn(input, name) ? (input as Record<string, unknown>)[name] : undefined
}
