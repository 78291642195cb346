import type { Version } from '@plant-store/domain'

const versions = new BigInt64Array(1_024)
let versionsLeft = 0

/** Returns 64 random bits, the version of one state of an entity (docs/decisions/0011-plant-versions.md). */
export function newVersion(): bigint {
  if (versionsLeft === 0) {
    versionsLeft = crypto.getRandomValues(versions).length
  }
  return versions[--versionsLeft] as bigint
}

export function toVersion(version: bigint): Version {
  return BigInt.asUintN(64, version).toString(16).padStart(16, '0') as Version
}

/** Returns `null`, which equals nothing in SQL, for a version that {@link toVersion} cannot have returned. */
export function fromVersion(version: Version): bigint | null {
  return /^[0-9a-f]{16}$/.test(version) ? BigInt.asIntN(64, BigInt(`0x${version}`)) : null
}
