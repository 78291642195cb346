import type { FastifyReply, FastifyRequest } from 'fastify'
import { countedBytesMin, type HeldBytes } from '../request/held-bytes.ts'
import { requestIdField } from '../request/request-id.ts'
import { RequestError, toFailure } from './failures.ts'
import { writeError } from './writers.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The number of the failure that it was answered with. */
    errorNumber: number | undefined
  }
}

/**
 * Sends finished text, which hooks of a service around do not get to serialize: what they make of a plant, no writer
 * knows. JSON has no charset to name (RFC 8259, 11), and Fastify adds one unless the answer has a serializer.
 */
export function answer<Body>(reply: FastifyReply, write: (body: Body) => string, body: Body): FastifyReply {
  return reply.header('content-type', 'application/json').serializer(unchanged).send(write(body))
}

const unchanged = (text: string) => text

/**
 * Answers with what was read, which may be long, and is held until the client has taken it.
 *
 * @throws RequestError `too-many-bytes`
 */
export function answerCounted<Body>(
  reply: FastifyReply,
  write: (body: Body) => string,
  body: Body,
  { hold }: HeldBytes,
): FastifyReply {
  const text = write(body)
  if (text.length < countedBytesMin) return answer(reply, () => text, body)
  const bytes = Buffer.from(text)
  hold(reply.raw, bytes.length)
  return reply.header('content-type', 'application/json').send(bytes)
}

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
  return answer(reply.code(status).headers(headers), writeError, body)
}
