import { Readable } from 'node:stream'
import fastJsonStringify from 'fast-json-stringify'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Budget, countedBytesMin } from '../budget.ts'
import { commonFailures } from '../errors/error-numbers.ts'
import type { Failure } from '../errors/failures.ts'
import { FailureBody } from '../openapi/schemas.ts'
import { changedTagAdvice } from '../request/conditions.ts'
import { notesOf, requestIdField } from '../request-context.ts'

/** What a handler returns. It is not the reply, which has a `then` that promises wait for. */
export type Answered = FastifyReply['raw']

const serializers = new Map<unknown, (value: unknown) => string>()

/** Returns what writes values of a schema. Cached by title, as descriptions differ from route to route. */
export function serializerOf(schema: {
  readonly title?: string
}): (value: unknown) => string {
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
export function answer(
  reply: FastifyReply,
  status: number,
  value: unknown,
  budget?: Budget,
): Answered {
  reply.code(status)
  // With no body at all, Fastify's HEAD would announce a 304 of 0 bytes (RFC 9110, 8.6).
  if (value === null) {
    return reply.send(reply.request.method === 'HEAD' ? Readable.from([]) : undefined).raw
  }
  // `Operation` promises that it fits the schema.
  const text = reply.serializeInput(
    value as Record<string, unknown>,
    `${status}`,
  ) as string
  if (budget === undefined || text.length < countedBytesMin) {
    // Releases what a page has reserved.
    budget?.setHeld(reply.raw, 0)
    return answerText(reply, text)
  }
  const bytes = Buffer.from(text)
  budget.setHeld(reply.raw, bytes.length)
  return reply.header('content-type', 'application/json').send(bytes).raw
}

/** Sends finished JSON. Without the serializer Fastify would add a charset, which JSON does not have (RFC 8259, 11). */
export function answerText(reply: FastifyReply, text: string): Answered {
  return reply.header('content-type', 'application/json').serializer(unchanged).send(text)
    .raw
}

const unchanged = (text: string) => text

export const writeFailure = serializerOf(FailureBody)

export function answerFailure(
  { status, headers, body }: Failure,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const notes = notesOf(request)
  notes.errorNumber = body.error
  // A failure can come before the hook that sets it.
  reply.header(requestIdField, request.id)
  const isCondition = body.error === commonFailures['condition-failed'][0]
  const advice = isCondition ? changedTagAdvice(request.headers['if-match']) : ''
  const message = `${body.message}${notes.failureSuffix ?? ''}${advice}`
  answerText(reply.code(status).headers(headers), writeFailure({ ...body, message }))
}
