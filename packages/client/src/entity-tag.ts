import { isVersion, type Version } from '@plant-store/domain'
import type { ChangeOptions } from './entity.ts'

/**
 * The end that proxies give an entity tag when they compress, such as Apache, Caddy and
 * Jetty.
 */
const codingSuffix = /(?:--?|;)(?:gzip|br|zstd|deflate)$/

/**
 * Returns the version in an entity tag. A proxy that compresses may have made it weak, or
 * may have added the coding.
 *
 * @throws TypeError if it has none
 */
export function readVersion(etag: string | null): Version {
  const tag = /^(?:W\/)?"(.*)"$/.exec(etag ?? '')?.[1]
  const version = tag?.replace(codingSuffix, '')
  if (!isVersion(version)) {
    throw new TypeError('the answer must have the ETag of an item')
  }
  return version
}

/**
 * Returns the header fields of a conditional change.
 *
 * @throws TypeError for a text that is not a version, which could mean something else
 *   between quotation marks
 */
export function conditionFields({
  ifMatch,
  ifNoneMatch,
}: ChangeOptions): Readonly<Record<string, string>> {
  if (ifMatch !== undefined && !isVersion(ifMatch)) {
    throw new TypeError('ifMatch must be a Version')
  }
  return {
    ...(ifMatch !== undefined && { 'if-match': `"${ifMatch}"` }),
    ...(ifNoneMatch !== undefined && { 'if-none-match': ifNoneMatch }),
  }
}
