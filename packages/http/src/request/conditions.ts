import {
  type Condition,
  isVersion,
  type Version,
  type Versions,
} from '@plant-store/domain'
import type { FastifyRequest } from 'fastify'
import { RequestError } from '../errors/error-numbers.ts'

export const toEntityTag = (version: Version) => `"${version}"`

/**
 * Returns the preconditions of a request (RFC 9110, 13.1), or `undefined` if it has none.
 *
 * @throws RequestError `bad-condition`
 */
export function readCondition({
  raw: { headers },
}: Pick<FastifyRequest, 'raw'>): Condition | undefined {
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = headers
  if (ifMatch === undefined && ifNoneMatch === undefined) {
    return undefined
  }
  return {
    matches: readVersions('If-Match', ifMatch),
    differs: readVersions('If-None-Match', ifNoneMatch),
  }
}

/** The end that a proxy adds to the opaque part of a tag when it compresses. */
const proxySuffix = /(?:--?|;)(?:gzip|br|zstd|deflate)"$/i

/**
 * Returns what a message about a failed condition adds if a proxy has changed a tag of
 * If-Match. Such a tag never matches, so reading the resource again would not help.
 */
export function changedTagAdvice(ifMatch: string | undefined): string {
  const tags = ifMatch?.match(/(?:W\/)?"[^"]*"/g) ?? []
  if (!tags.some(tag => tag.startsWith('W/') || proxySuffix.test(tag))) {
    return ''
  }
  return '. The tag in If-Match was changed on the way: a proxy that compresses answers adds W/ or a suffix such as -gzip'
}

const tag = /(W\/)?"([!#-~\x80-\xff]*)"/g
/** A list of tags, whose elements may be empty (RFC 9110, 5.6.1). Takes linear time. */
const list = new RegExp(
  String.raw`^[ \t]*(?:${tag.source}[ \t]*)?(?:,[ \t]*(?:${tag.source}[ \t]*)?)*$`,
)

/**
 * Reads a list of entity tags (RFC 9110, 8.8.3). Leaves out tags that no version can
 * have.
 *
 * @throws RequestError `bad-condition`
 */
function readVersions(
  field: 'If-Match' | 'If-None-Match',
  value: string | undefined,
): Versions | undefined {
  if (value === undefined) {
    return undefined
  }
  if (value === '*') {
    return 'any'
  }
  if (!list.test(value)) {
    const message = `${field} must be * or a list of entity tags in quotation marks`
    throw new RequestError('bad-condition', message)
  }
  // A weak tag matches nothing in If-Match, and its version in If-None-Match (RFC 9110,
  // 8.8.3.2).
  const takesWeak = field === 'If-None-Match'
  return [...value.matchAll(tag)]
    .filter(([, weak]) => takesWeak || weak === undefined)
    .map(([, , opaque = '']) => opaque)
    .filter(isVersion)
}
