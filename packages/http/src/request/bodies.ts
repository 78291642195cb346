import { safeParse } from 'fast-content-type-parse'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { RequestError } from '../errors/error-numbers.ts'
import { type Body, bodyOf } from '../wire/body.ts'
import { type Budget, uncountedBytesMax } from '../wire/budget.ts'
import { expectationOf } from './header-section.ts'

/** Hands a body over as bytes, or as it arrives. */
type TakeBody = (request: FastifyRequest, body: Body, done: Done) => void
type Done = (error: Error | null, body?: unknown) => void

/**
 * Has the routes of this instance take bodies of one media type. A request without a
 * body may have any.
 *
 * @param budget counts the memory that bodies hold
 */
export function acceptBodies(
  app: FastifyInstance,
  mediaType: string,
  budget: Budget,
  take: TakeBody,
): void {
  app.addHook('onRequest', ({ headers, raw }, _reply, done) => {
    if (bodyOf(raw) === undefined || headers['content-length'] === '0') {
      // Fastify would look for a parser of the media type.
      delete raw.headers['content-type']
    }
    done()
  })
  app.addContentTypeParser([mediaType, '*'], (request, stream, done) => {
    // Fastify parses only a request that has a body.
    const body = bodyOf(stream) as Body
    const fault = faultOfFields(request, mediaType)
    if (fault === undefined) {
      body.startCounting(budget, expectationOf(request) !== undefined)
      take(request, body, done)
      return
    }
    onceBegun(request, body, () => {
      const isEmpty = body.isWhole && body.length === 0
      done(isEmpty ? null : (body.error ?? fault))
    })
  })
}

/**
 * Calls back once a body has begun or ended. One in chunks may be empty: a proxy from
 * HTTP/2 makes it of no body, whatever the media type. A client that waits for 100
 * Continue has a body, and sends none of it before.
 */
function onceBegun(request: FastifyRequest, body: Body, callBack: () => void) {
  const isInChunks = request.headers['transfer-encoding'] !== undefined
  const mayBeEmpty = isInChunks && expectationOf(request) === undefined
  const hasBegun = body.length > 0 || body.isWhole || body.error !== undefined
  if (mayBeEmpty && !hasBegun) {
    body.waitForMore(uncountedBytesMax, callBack)
  } else {
    callBack()
  }
}

/** Hands over a body once all of it has arrived. */
export function readWhole(
  request: FastifyRequest,
  body: Body,
  bodyBytesMax: number,
  done: Done,
): void {
  const announcedLength = Number(request.headers['content-length'] ?? 0)
  const readOn = () => {
    if (Math.max(body.length, announcedLength) > bodyBytesMax) {
      const message = `the body is longer than ${bodyBytesMax} bytes`
      body.error ??= new RequestError('body-too-large', message)
    }
    if (body.error !== undefined) {
      body.drop()
      done(body.error)
    } else if (body.isWhole) {
      done(null, body.take(body.length))
    } else {
      body.waitForMore(Number.POSITIVE_INFINITY, readOn)
    }
  }
  readOn()
}

export const linesMediaType = 'application/x-ndjson'

/** Returns what is at fault in the header fields of a body. */
function faultOfFields(
  { method, headers }: FastifyRequest,
  mediaType: string,
): RequestError | undefined {
  if (!isUtf8Type(headers['content-type'], mediaType)) {
    const message = `the media type of the body must be ${mediaType}, in UTF-8`
    return new RequestError('unsupported-media-type', message)
  }

  // The part would replace the whole resource (RFC 9110, 14.5).
  if (method === 'PUT' && headers['content-range'] !== undefined) {
    const message = 'PUT replaces the whole resource: remove Content-Range'
    return new RequestError('partial-put', message)
  }

  const contentCoding = headers['content-encoding']
  if (contentCoding !== undefined && contentCoding.toLowerCase() !== 'identity') {
    const message = 'the body must be sent without Content-Encoding'
    return new RequestError('unsupported-coding', message, {
      'accept-encoding': 'identity',
    })
  }

  // Node decodes only chunked.
  const transferCoding = headers['transfer-encoding']
  if (transferCoding !== undefined && transferCoding.toLowerCase() !== 'chunked') {
    const message = 'chunked is the only transfer coding accepted'
    return new RequestError('unsupported-coding', message)
  }
  return undefined
}

function isUtf8Type(contentType = '', mediaType: string) {
  // Most clients send only this, which needs no parser.
  if (contentType === mediaType) {
    return true
  }
  const { type, parameters } = safeParse(contentType)
  const { charset = 'utf-8' } = parameters
  // Many clients write it without the hyphen.
  return type === mediaType && /^utf-?8$/i.test(charset)
}
