import type { Readable } from 'node:stream'
import { safeParse } from 'fast-content-type-parse'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { RequestError } from '../errors/error-numbers.ts'
import { type Body, bodyOf } from '../wire/body.ts'
import type { Budget } from '../wire/budget.ts'
import { expectationOf } from './header-section.ts'

/**
 * Has the routes of this instance take bodies of JSON, which they get whole, as bytes. A
 * request without a body may have any media type.
 *
 * @param budget counts the memory that bodies hold
 */
export function acceptJsonBodies(
  app: FastifyInstance,
  budget: Budget,
  bodyBytesMax: number,
): void {
  app.addHook('onRequest', ({ headers, raw }, _reply, done) => {
    if (bodyOf(raw) === undefined || headers['content-length'] === '0') {
      // Fastify would look for a parser of the media type.
      delete raw.headers['content-type']
    }
    done()
  })
  acceptMediaType(app, 'application/json', (request, stream, done) => {
    const body = bodyOf(stream) as Body
    whenBegun(request, body, () => {
      if (isEmpty(body)) {
        done(null)
        return
      }
      const fault = countBody(request, body, budget)
      if (fault === undefined) {
        readWhole(request, body, bodyBytesMax, done)
      } else {
        done(fault)
      }
    })
  })
}

/** Hands over a body once all of it has arrived. */
export function readWhole(
  request: FastifyRequest,
  body: Body,
  bodyBytesMax: number,
  done: Done,
): void {
  const length = Math.max(body.length, Number(request.headers['content-length'] ?? 0))
  if (length > bodyBytesMax) {
    const message = `the body is longer than ${bodyBytesMax} bytes`
    body.error ??= new RequestError('body-too-large', message)
  }
  if (body.error !== undefined) {
    body.drop()
    done(body.error)
  } else if (body.isEnded) {
    done(null, body.take(body.length))
  } else {
    body.waitForMore(Number.POSITIVE_INFINITY, () =>
      readWhole(request, body, bodyBytesMax, done),
    )
  }
}

/**
 * Has the routes of this instance take bodies of lines, which they get as they arrive.
 */
export function acceptLineBodies(app: FastifyInstance, budget: Budget): void {
  acceptMediaType(app, linesMediaType, (request, stream, done) => {
    const body = bodyOf(stream)
    if (body === undefined) {
      done(null)
      return
    }
    const fault = countBody(request, body, budget)
    done(fault ?? null, body)
  })
}

export const linesMediaType = 'application/x-ndjson'

type Done = (error: Error | null, body?: unknown) => void
type ReadBody = (request: FastifyRequest, stream: Readable, done: Done) => void

/** Has bodies of one media type read, and others refused. */
function acceptMediaType(app: FastifyInstance, mediaType: string, read: ReadBody): void {
  app.addContentTypeParser(mediaType, (request, stream, done) => {
    if (isUtf8Type(request.headers['content-type'], mediaType)) {
      read(request, stream, done)
      return
    }
    refuseType(request, stream, done, `${mediaType}, in UTF-8, and its charset utf-8`)
  })

  app.addContentTypeParser('*', (request, stream, done) =>
    refuseType(request, stream, done, mediaType),
  )
}

/** Refuses a body, unless the request turns out to have none. */
function refuseType(
  request: FastifyRequest,
  stream: Readable,
  done: Done,
  mediaType: string,
): void {
  const message = `the media type of the body must be ${mediaType}`
  const refusal = new RequestError('unsupported-media-type', message)
  const body = bodyOf(stream)
  if (body === undefined) {
    done(refusal)
    return
  }
  whenBegun(request, body, () => done(isEmpty(body) ? null : (body.error ?? refusal)))
}

/**
 * Calls back once it is known whether a request has a body. A proxy from HTTP/2 turns a
 * request without one into one with an empty body in chunks, of any media type.
 */
function whenBegun(request: FastifyRequest, body: Body, onBegun: () => void): void {
  const isChunked = request.headers['transfer-encoding'] !== undefined
  // A client that waits for 100 Continue has a body, and sends none of it before.
  if (isChunked && expectationOf(request) === undefined) {
    body.whenBegun(onBegun)
  } else {
    onBegun()
  }
}

function isEmpty(body: Body): boolean {
  return body.isEnded && body.length === 0
}

/** Counts the memory of a body from now on, or returns why it is refused. */
function countBody(
  request: FastifyRequest,
  body: Body,
  budget: Budget,
): RequestError | undefined {
  const fault = faultOfFields(request)
  if (fault === undefined) {
    body.count(budget, expectationOf(request) !== undefined)
  }
  return fault
}

/** Returns what is at fault in the header fields of a body, besides its media type. */
function faultOfFields({ method, headers }: FastifyRequest): RequestError | undefined {
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

function isUtf8Type(contentType = '', mediaType: string): boolean {
  // Most clients send only this, which needs no parser.
  if (contentType === mediaType) {
    return true
  }
  const { type, parameters } = safeParse(contentType)
  const { charset = 'utf-8' } = parameters
  // Many clients write it without the hyphen.
  return type === mediaType && /^utf-?8$/i.test(charset)
}
