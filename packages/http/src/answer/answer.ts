import type { FastifyReply, FastifyRequest } from 'fastify'
import { countedBytesMin, type HeldBytes } from '../request/held-bytes.ts'
import { requestIdField } from '../request/request-id.ts'
import { RequestError, toFailure } from './failures.ts'
import { writeFailure } from './serializers.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The number of the failure that it was answered with. */
    errorNumber: number | undefined
  }
}

/** Answers with a value, as the route's schema for this status has it written. */
export function answer(reply: FastifyReply, value: unknown): FastifyReply {
  return answerText(reply, write(reply, value))
}

/**
 * Answers with what was read, which may be long, and is held until the client has taken it.
 *
 * @throws RequestError `too-many-bytes`
 */
export function answerCounted(reply: FastifyReply, value: unknown, { hold }: HeldBytes): FastifyReply {
  const text = write(reply, value)
  if (text.length < countedBytesMin) return answerText(reply, text)
  const bytes = Buffer.from(text)
  hold(reply.raw, bytes.length)
  return reply.header('content-type', 'application/json').send(bytes)
}

function write(reply: FastifyReply, value: unknown): string {
  return reply.serializeInput(value as Record<string, unknown>, `${reply.statusCode}`) as string
}

/**
 * Sends finished JSON, which hooks of a service around do not get to serialize: no serializer knows what they make of a
 * value. JSON has no charset to name (RFC 8259, 11), and Fastify adds one unless the answer has a serializer.
 */
export function answerText(reply: FastifyReply, text: string): FastifyReply {
  return reply.header('content-type', 'application/json').serializer(unchanged).send(text)
}

const unchanged = (text: string) => text

/** Every failure in the one shape. Set as the error handler wherever requests are answered. */
export function answerFailure(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  // The client went away in the middle of its body: nobody hears this answer, and nothing failed here.
  const isCutShort = error === request.raw.errored
  const { status, headers, body, isDefect } = toFailure(
    isCutShort ? new RequestError('bad-request', 'the request ended before its body did') : error,
  )
  if (isDefect) request.log.error({ reqId: request.id, err: error }, 'failed to answer')
  // As often as clients ask: why a store fails is logged once, by whoever opened it.
  else if (status === 503) request.log.debug({ reqId: request.id, err: error }, 'could not serve')
  request.errorNumber = body.error
  // Not every failure has passed the hook that sets it.
  reply.header(requestIdField, request.id)
  return answerText(reply.code(status).headers(headers), writeFailure(body))
}
