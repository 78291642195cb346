import {
  isPlantVersion,
  type PlantCondition,
  type PlantVersion,
  type PlantVersions,
} from '@plant-store/domain'
import type { FastifyRequest } from 'fastify'
import { RequestError } from '../answer/failures.ts'

export const toEntityTag = (version: PlantVersion) => `"${version}"`

/**
 * Returns what a request demands of the plant (RFC 9110, 13.1); `undefined` when it demands nothing.
 *
 * @throws RequestError `bad-condition`
 */
export function readCondition({ raw: { headers } }: FastifyRequest): PlantCondition | undefined {
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = headers
  if (ifMatch === undefined && ifNoneMatch === undefined) return undefined
  return {
    // A weak tag matches nothing in If-Match, and its version in If-None-Match (RFC 9110, 8.8.3.2).
    matches: ifMatch === undefined ? undefined : versionsIn('If-Match', ifMatch, tag => !tag.isWeak),
    differs: ifNoneMatch === undefined ? undefined : versionsIn('If-None-Match', ifNoneMatch, () => true),
  }
}

function versionsIn(field: string, value: string, isWanted: (tag: EntityTag) => boolean): PlantVersions {
  if (value === '*') return 'any'
  const tags = parseEntityTags(value)
  if (tags === undefined)
    throw new RequestError('bad-condition', `${field} must be * or a list of entity tags in quotation marks`)
  return tags
    .filter(isWanted)
    .map(({ opaque }) => opaque)
    .filter(isPlantVersion)
}

interface EntityTag {
  readonly isWeak: boolean
  /** What stands between the quotation marks. */
  readonly opaque: string
}

const tokens = /[ \t]+|,|(W\/)?"([!#-~\x80-\xff]*)"|./gs

const isBlank = (token: string) => token.startsWith(' ') || token.startsWith('\t')

/** Reads a list of entity tags (RFC 9110, 5.6.1 and 8.8.3) in linear time; `undefined` for anything else. */
function parseEntityTags(text: string): readonly EntityTag[] | undefined {
  const tags: EntityTag[] = []
  let isAfterTag = false
  for (const [token, weak, opaque] of text.matchAll(tokens)) {
    if (token === ',') isAfterTag = false
    else if (opaque !== undefined && !isAfterTag) {
      tags.push({ isWeak: weak !== undefined, opaque })
      isAfterTag = true
    } else if (!isBlank(token)) return undefined
  }
  return tags
}
