declare const versionBrand: unique symbol

/**
 * The name of one state of an entity. No other state of the entity ever has it, even
 * after the entity is removed and created again, or the store is restored from a backup.
 */
export type Version = string & { readonly [versionBrand]: true }

/** Says which versions the stored entity may have for a change to be made. */
export interface Condition {
  /** It has one of these versions. With `any`, it exists. */
  readonly matches?: Versions | undefined
  /** It has none of these versions. With `any`, it does not exist. */
  readonly differs?: Versions | undefined
}

export type Versions = 'any' | readonly Version[]

/**
 * Returns whether the value is 1 to 64 of the printable ASCII characters, without
 * quotation marks.
 */
export function isVersion(value: unknown): value is Version {
  return typeof value === 'string' && /^[!#-~]{1,64}$/.test(value)
}

/** @param version `undefined` if the entity does not exist */
export function isMet(
  { matches, differs }: Condition,
  version: Version | undefined,
): boolean {
  const doesMatch = matches === undefined || isAmong(matches, version)
  const doesDiffer = differs === undefined || !isAmong(differs, version)
  return doesMatch && doesDiffer
}

function isAmong(versions: Versions, version: Version | undefined) {
  if (version === undefined) {
    return false
  }
  return versions === 'any' || versions.includes(version)
}
