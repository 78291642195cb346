import { Readable } from 'node:stream'
import fastJsonStringify from 'fast-json-stringify'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { errorNumber, lineCounts, requestIdField } from '../answered-request.ts'
import { FailureBody } from '../interface/schemas.ts'
import { type Budget, countedBytesMin } from './budget.ts'
import { toFailure } from './failures.ts'

/** Makes routes of this context write answers with their schemas, without validating, and failures as Error. */
export function answerBySchemas(app: FastifyInstance): void {
  app.setValidatorCompiler(() => () => true)
  app.setSerializerCompiler(({ schema }) => serializerOf(schema as object))
  app.setErrorHandler(answerFailure)
}

const serializers = new Map<unknown, (value: unknown) => string>()

/** Cached by title, as descriptions differ from route to route. */
function serializerOf(schema: { readonly title?: string }): (value: unknown) => string {
  const key = schema.title ?? schema
  const serializer = serializers.get(key) ?? fastJsonStringify(schema)
  serializers.set(key, serializer)
  return serializer
}

/**
 * Sends a value with the route's schema for this status.
 *
 * @param budget counts the answer if it is long
 * @throws RequestError `too-many-bytes`
 */
export function answer(reply: FastifyReply, value: object, budget?: Budget): FastifyReply {
  const text = reply.serializeInput(value as Record<string, unknown>, `${reply.statusCode}`) as string
  if (budget === undefined || text.length < countedBytesMin) {
    // Releases what a page has reserved.
    budget?.hold(reply.raw, 0)
    return answerText(reply, text)
  }
  const bytes = Buffer.from(text)
  budget.hold(reply.raw, bytes.length)
  return reply.header('content-type', 'application/json').send(bytes)
}

/** Sends 304. With no body at all, Fastify's HEAD would announce a plant of 0 bytes (RFC 9110, 8.6). */
export function answerNotModified({ method }: FastifyRequest, reply: FastifyReply): FastifyReply {
  return reply.code(304).send(method === 'HEAD' ? Readable.from([]) : undefined)
}

/**
 * Sends finished JSON that no hook of the host can change first. Without the serializer Fastify would add a charset,
 * which JSON does not have (RFC 8259, 11).
 */
export function answerText(reply: FastifyReply, text: string): FastifyReply {
  return reply.header('content-type', 'application/json').serializer(unchanged).send(text)
}

const unchanged = (text: string) => text

export const writeFailure = serializerOf(FailureBody)

export function answerFailure(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { status, headers, body, isDefect } = toFailure(error)
  if (isDefect) request.log.error({ reqId: request.id, err: error }, 'failed to answer')
  // Clients can cause any number of these. The main thread logs the reason once.
  else if (status === 503) request.log.debug({ reqId: request.id, err: error }, 'could not serve')
  request[errorNumber] = body.error
  // A failure can come before the hook that sets it.
  reply.header(requestIdField, request.id)
  const kept = request[lineCounts] === undefined ? '' : '; plants of earlier lines may have been created'
  return answerText(
    reply.code(status).headers(headers),
    writeFailure({ ...body, message: `${body.message}${kept}` }),
  )
}
