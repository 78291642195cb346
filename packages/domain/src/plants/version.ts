import type { Plant } from './plant.ts'

declare const plantVersion: unique symbol

/**
 * The name of one state of a plant. No other state of the plant ever has it, even after the plant is removed and
 * created again, or the store is restored from a backup.
 */
export type PlantVersion = string & { readonly [plantVersion]: true }

export interface VersionedPlant {
  readonly plant: Plant
  readonly version: PlantVersion
}

/**
 * A plant was stored under an id that was free: created, alone or with others, saved as a new one, or imported. The
 * version also names this event, and no other.
 */
export interface PlantAdded extends VersionedPlant {
  readonly addedAt: Date
}

/** What a caller requires of the stored plant. */
export interface PlantCondition {
  /** The plant has one of these versions. With `any`, the plant exists. */
  readonly matches?: PlantVersions | undefined
  /** The plant has none of these versions. With `any`, the plant does not exist. */
  readonly differs?: PlantVersions | undefined
}

export type PlantVersions = 'any' | readonly PlantVersion[]

/** Returns whether the value is 1 to 64 of the ASCII characters that an entity tag may contain. */
export function isPlantVersion(value: unknown): value is PlantVersion {
  return typeof value === 'string' && /^[!#-~]{1,64}$/.test(value)
}

/** @param version `undefined` if the plant does not exist */
export function isMet({ matches, differs }: PlantCondition, version: PlantVersion | undefined): boolean {
  return (
    (matches === undefined || isAmong(matches, version)) &&
    (differs === undefined || !isAmong(differs, version))
  )
}

function isAmong(versions: PlantVersions, version: PlantVersion | undefined): boolean {
  return version !== undefined && (versions === 'any' || versions.includes(version))
}
