import type { Plant, PlantRepository } from '@plant-store/domain'

/** Returns methods that replace those of a right repository, to break a promise. */
export type Break = (right: PlantRepository) => Partial<BrokenRepository>

/** A broken repository may return what the port does not allow. */
type BrokenRepository = {
  readonly [Method in keyof PlantRepository]: (
    ...values: Parameters<PlantRepository[Method]>
  ) => Promise<unknown>
}

/** Broken repositories, by what they do wrong. */
export type Broken = Readonly<Record<string, Break>>

export const everything = { limit: Number.MAX_SAFE_INTEGER }

/** Waits until other callers had their turn. */
export function later(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}

/** Returns the object without some of its optional members. */
export function without<Value extends object>(
  value: Value,
  ...names: readonly (keyof Value)[]
): Value {
  const copy = { ...value }
  for (const name of names) {
    delete copy[name]
  }
  return copy
}

export function withoutTag(plant: Plant): Plant {
  return without(plant, 'tag')
}

/** Changes A to Z only. */
export function lowerCase(text: string): string {
  return text.replace(/[A-Z]/g, letter => letter.toLowerCase())
}
