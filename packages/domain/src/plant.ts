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

/** `never` for what is no text: it would need a rule of its own, and a way of its own through every edge. */
type TextPresence<Field extends keyof Plant> = Plant[Field] extends PlantText | undefined
  ? undefined extends Plant[Field]
    ? 'optional'
    : 'required'
  : never

type TextField = Exclude<keyof Plant, 'id'>

const textPresence: { readonly [Field in TextField]-?: TextPresence<Field> } = {
  name: 'required',
  tag: 'optional',
}

/**
 * A plant's texts, in the order in which they are written after its id. Whoever carries plants member by member goes by
 * this, and so need not name them.
 */
export const plantTexts = Object.entries(textPresence).map(([field, presence]) => ({
  field,
  isOptional: presence === 'optional',
})) as readonly { readonly field: TextField; readonly isOptional: boolean }[]

/**
 * The only way to a Plant. Members that a plant doesn't have are left out.
 *
 * @param input an object with the members of a {@link Plant}.
 * @param id where the id is known from elsewhere (a path): `input.id` may then be missing, and must otherwise be equal.
 * @throws DomainError `invalid-plant`, with every fault at once
 */
export function parsePlant(input: unknown, id?: PlantId): Plant {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    throw refusal('invalid-plant', [{ field: 'plant', problem: 'must be an object' }])
  }
  const given = member(input, 'id')
  const plant: { id: unknown; [field: string]: unknown } = { id: given === undefined ? id : given }

  const faults: Fault[] = []
  const report = (field: string, problem: string | undefined) => {
    if (problem !== undefined) faults.push({ field, problem })
  }
  report('id', idProblem(plant.id, id))
  for (const { field, isOptional } of plantTexts) {
    const text = member(input, field)
    if (text === undefined && isOptional) continue
    report(field, textProblem(text))
    plant[field] = text
  }
  if (faults.length > 0) throw refusal('invalid-plant', faults)

  return plant as unknown as Plant
}

/** What keeps a value from being a {@link PlantText}; `undefined` when nothing does. */
export function textProblem(value: unknown): string | undefined {
  if (value === undefined) return 'is required'
  if (typeof value !== 'string') return 'must be a string'
  if (!value.isWellFormed()) return 'must be Unicode text: it has a lone surrogate'
  if (value.includes('\0')) return 'must not contain U+0000'
  return undefined
}

export function isSamePlant(a: Plant, b: Plant): boolean {
  return a.id === b.id && plantTexts.every(({ field }) => a[field] === b[field])
}

/** How long a plant's texts are in UTF-8. */
export function textBytes(plant: Plant): number {
  let bytes = 0
  for (const { field } of plantTexts) {
    const text = plant[field] ?? ''
    bytes += text.length
    for (let at = 0; at < text.length; at++) {
      const unit = text.charCodeAt(at)
      // Each half of a surrogate pair is two of its four bytes.
      if (unit > 0x7f) bytes += unit > 0x7ff && (unit < 0xd800 || unit > 0xdfff) ? 2 : 1
    }
  }
  return bytes
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
