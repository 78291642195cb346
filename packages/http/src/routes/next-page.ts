import { maxHeaderSize } from 'node:http'
import type { PlantId } from '@plant-store/domain'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { RequestError } from '../answer/failures.ts'
import { about } from '../answer/operation.ts'

export const nextPageHeader = about(
  'The next page (RFC 8288, rel="next"); absent on the last one. 431 where no request could carry it.',
  Type.String(),
)

/** The other header fields of an answer that has a link. */
const answerFieldsBytesMax = 1024

/**
 * Returns the Link to the page after this one, as a reference that starts at the root, as RFC 8288 allows: it stays right behind any proxy that keeps the path.
 *
 * @throws RequestError `headers-too-large` when the server would refuse the same client's request for it, or a client
 *   with the server's limit could not read the answer
 */
export function nextPage(
  { raw, server }: FastifyRequest,
  after: PlantId,
  { limit, tag }: { limit: number; tag?: string },
): string {
  const [, path = ''] = /^(?:https?:\/\/[^/]*)?\/*(\/[^?#]*)/i.exec(raw.url as string) ?? []
  const filter = tag === undefined ? '' : `&tag=${encodeURIComponent(tag)}`
  const target = `${path.replace(/[<>]/g, encodeURIComponent)}?limit=${limit}&after=${after}${filter}`
  // What Node counts. Its servers have this, though its documentation doesn't say so.
  const { maxHeaderSize: headerBytesMax = maxHeaderSize } = server.server as { maxHeaderSize?: number }
  const fieldsBytes = raw.rawHeaders.reduce((bytes, text) => bytes + text.length, 0)
  if (target.length + Math.max(fieldsBytes, answerFieldsBytesMax) < headerBytesMax)
    return `<${target}>; rel="next"`
  throw new RequestError(
    'headers-too-large',
    'a request for the next page would be too large: ask for a shorter tag, or for more plants a page',
  )
}
