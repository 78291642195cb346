import assert from 'node:assert/strict'
import type { Version } from '@plant-store/domain'

/** Random versions, made many at a time because each call of the generator is slow. */
const versions = new BigInt64Array(1_024)
let versionsLeft = 0

/**
 * Returns 64 random bits, the version of one state of a plant
 * (docs/decisions/0011-plant-versions.md).
 */
export function newVersion(): bigint {
  if (versionsLeft === 0) {
    crypto.getRandomValues(versions)
    versionsLeft = versions.length
  }
  versionsLeft--
  const version = versions[versionsLeft]
  assert(version !== undefined, 'a version is left')
  return version
}

export function toVersion(version: bigint): Version {
  const digits = BigInt.asUintN(64, version).toString(16).padStart(16, '0')
  // Sixteen digits have the form of a version.
  return digits as Version
}

/**
 * Returns the stored version, or `null`, which equals nothing in SQL, for one that
 * {@link toVersion} cannot have returned.
 */
export function fromVersion(version: Version): bigint | null {
  if (!/^[0-9a-f]{16}$/.test(version)) {
    return null
  }
  return BigInt.asIntN(64, BigInt(`0x${version}`))
}
