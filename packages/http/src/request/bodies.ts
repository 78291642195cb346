import type { Readable } from 'node:stream'
import { safeParse } from 'fast-content-type-parse'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { RequestError } from '../errors/failures.ts'
import { type Body, bodyOf, createBodyReader } from '../wire/body.ts'
import type { Budget } from '../wire/budget.ts'
import { expectationOf } from './header-section.ts'

/**
 * Has the routes of this instance take bodies of JSON, which they get whole, as bytes. A
 * request without a body may have any media type.
 *
 * @param budget counts the memory that bodies hold
 */
export function takeJson(
  app: FastifyInstance,
  budget: Budget,
  bodyBytesMax: number,
): void {
  app.addHook('preParsing', (request, reply, _payload, done) => {
    const body = bodyToRead(request)
    if (body === undefined) {
      // Otherwise Fastify would look for a parser of the media type.
      delete request.raw.headers['content-type']
      done()
      return
    }

    const isChunked = request.headers['transfer-encoding'] !== undefined
    const admit = () => {
      if (!isEmpty(body)) {
        checkBody(request)
        admitBody(body, request, reply, budget)
      }
    }
    // Proxies from HTTP/2 send no body as an empty one in chunks, of any media type.
    if (isChunked && expectationOf(request) === undefined) {
      body.whenBegun(() => settle(admit, done))
    } else {
      settle(admit, done)
    }
  })
  takeMediaType(app, 'application/json', createBodyReader(bodyBytesMax))
}

/** Has the routes of this instance take bodies of lines, which they get as they arrive. */
export function takeLines(app: FastifyInstance, budget: Budget): void {
  app.addHook('preParsing', (request, reply, _payload, done) => {
    const body = bodyOf(request.raw)
    settle(() => {
      checkBody(request)
      if (body !== undefined) {
        admitBody(body, request, reply, budget)
      }
    }, done)
  })
  takeMediaType(app, linesMediaType, (_request, stream, done) =>
    done(null, bodyOf(stream)),
  )
}

export const linesMediaType = 'application/x-ndjson'

/** Runs a step and passes on its failure. */
function settle(step: () => void, done: (error?: Error) => void): void {
  try {
    step()
  } catch (error) {
    done(error as Error)
    return
  }
  done()
}

/** Returns the body of a request, unless it has the length 0 or the method reads none. */
function bodyToRead({ method, headers, raw }: FastifyRequest): Body | undefined {
  const isRead = method !== 'GET' && method !== 'HEAD'
  return isRead && headers['content-length'] !== '0' ? bodyOf(raw) : undefined
}

function isEmpty(body: Body): boolean {
  return body.isEnded && body.length === 0
}

/** @throws RequestError if the description of the body is at fault */
function checkBody({ method, headers }: FastifyRequest): void {
  // The part would replace the whole resource (RFC 9110, 14.5).
  if (method === 'PUT' && headers['content-range'] !== undefined) {
    const message = 'PUT replaces the whole resource: remove Content-Range'
    throw new RequestError('partial-put', message)
  }

  const contentCoding = headers['content-encoding']
  if (contentCoding !== undefined && contentCoding.toLowerCase() !== 'identity') {
    const message = 'the body must be sent without Content-Encoding'
    throw new RequestError('unsupported-coding', message, {
      'accept-encoding': 'identity',
    })
  }

  // Node decodes only chunked.
  const transferCoding = headers['transfer-encoding']
  if (transferCoding !== undefined && transferCoding.toLowerCase() !== 'chunked') {
    const message = 'chunked is the only transfer coding accepted'
    throw new RequestError('unsupported-coding', message)
  }
}

/** Counts the memory of a body, and asks a client that waits to send it once it is read. */
function admitBody(
  body: Body,
  request: FastifyRequest,
  reply: FastifyReply,
  budget: Budget,
): void {
  body.countWith(bytes => budget.setHeld(reply.raw, bytes))
  if (expectationOf(request) !== undefined) {
    body.askWith(() => reply.raw.writeContinue())
  }
}

type ReadBody = (
  request: FastifyRequest,
  stream: Readable,
  done: (error: Error | null, body?: unknown) => void,
) => void

/** Has bodies of one media type read, and others refused. */
function takeMediaType(app: FastifyInstance, mediaType: string, read: ReadBody): void {
  app.addContentTypeParser(mediaType, (request, stream, done) => {
    if (isUtf8Type(request.headers['content-type'], mediaType)) {
      read(request, stream, done)
      return
    }
    const message = `the media type of the body must be ${mediaType}, in UTF-8, and its charset utf-8`
    done(new RequestError('unsupported-media-type', message))
  })

  app.addContentTypeParser('*', (_request, stream, done) => {
    const body = bodyOf(stream)
    if (body !== undefined && isEmpty(body)) {
      done(null)
      return
    }
    const message = `the media type of the body must be ${mediaType}`
    done(body?.error ?? new RequestError('unsupported-media-type', message))
  })
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
