import type { Plant } from './plant.ts'

declare const plantVersion: unique symbol

/**
 * The name of one state of one plant. No other state of that plant ever has it: not after the plant was removed and
 * created again, and not after its store was restored from a backup. {@link isPlantVersion} says which text it may be.
 */
export type PlantVersion = string & { readonly [plantVersion]: true }

export interface VersionedPlant {
  readonly plant: Plant
  readonly version: PlantVersion
}

/** What a change demands of the plant that it finds. */
export interface PlantCondition {
  /** The plant has one of these versions; `any`: there is such a plant. */
  readonly matches?: PlantVersions | undefined
  /** The plant has none of these versions; `any`: there is no such plant. */
  readonly differs?: PlantVersions | undefined
}

export type PlantVersions = 'any' | readonly PlantVersion[]

/** Returns whether it is 1 to 64 characters of those that an entity tag may have in ASCII. */
export function isPlantVersion(value: unknown): value is PlantVersion {
  return typeof value === 'string' && /^[!#-~]{1,64}$/.test(value)
}

/** @param version of the plant; `undefined` when there is none */
export function isMet({ matches, differs }: PlantCondition, version: PlantVersion | undefined): boolean {
  return (
    (matches === undefined || isAmong(matches, version)) &&
    (differs === undefined || !isAmong(differs, version))
  )
}

function isAmong(versions: PlantVersions, version: PlantVersion | undefined): boolean {
  return version !== undefined && (versions === 'any' || versions.includes(version))
}
