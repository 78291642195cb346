import { Readable } from 'node:stream'
import fastJsonStringify from 'fast-json-stringify'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { errorNumber, failureSuffix, requestIdField } from '../answered-request.ts'
import { type Budget, countedBytesMin } from '../budget.ts'
import type { ToFailure } from '../errors/failures.ts'
import { FailureBody } from '../openapi/schemas.ts'

/** Makes routes of this context write answers with their schemas, without validating, and failures as Error. */
export function answerBySchemas(app: FastifyInstance, answerFailure: AnswerFailure): void {
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
 * Sends a value with the route's schema for this status, or no body for `null`.
 *
 * @param budget counts the answer if it is long
 * @throws RequestError `too-many-bytes`
 */
export function answer(reply: FastifyReply, status: number, value: unknown, budget?: Budget): FastifyReply {
  reply.code(status)
  // With no body at all, Fastify's HEAD would announce a 304 of 0 bytes (RFC 9110, 8.6).
  if (value === null) return reply.send(reply.request.method === 'HEAD' ? Readable.from([]) : undefined)
  // `Operation` promises that it fits the schema.
  const text = reply.serializeInput(value as Record<string, unknown>, `${status}`) as string
  if (budget === undefined || text.length < countedBytesMin) {
    // Releases what a page has reserved.
    budget?.setHeld(reply.raw, 0)
    return answerText(reply, text)
  }
  const bytes = Buffer.from(text)
  budget.setHeld(reply.raw, bytes.length)
  return reply.header('content-type', 'application/json').send(bytes)
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

export type AnswerFailure = (error: unknown, request: FastifyRequest, reply: FastifyReply) => FastifyReply

export function createAnswerFailure(toFailure: ToFailure): AnswerFailure {
  return (error, request, reply) => {
    const { status, headers, body, isDefect } = toFailure(error)
    if (isDefect) request.log.error({ reqId: request.id, err: error }, 'failed to answer')
    // Clients can cause any number of these. The main thread logs the reason once.
    else if (status === 503) request.log.debug({ reqId: request.id, err: error }, 'could not serve')
    request[errorNumber] = body.error
    // A failure can come before the hook that sets it.
    reply.header(requestIdField, request.id)
    const message = `${body.message}${request[failureSuffix] ?? ''}`
    return answerText(reply.code(status).headers(headers), writeFailure({ ...body, message }))
  }
}
