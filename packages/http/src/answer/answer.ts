import { Readable } from 'node:stream'
import fastJsonStringify from 'fast-json-stringify'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { countedBytesMin, type HeldBytes } from '../request/held-bytes.ts'
import { errorNumber, lineCounts } from '../request/notes.ts'
import { requestIdField } from '../request/request-log.ts'
import { toFailure } from './failures.ts'
import { FailureBody } from './schemas.ts'

/** Makes routes of this context write answers by their schemas, which judge nothing, and failures in the one shape. */
export function answerBySchemas(app: FastifyInstance): void {
  app.setValidatorCompiler(() => () => true)
  app.setSerializerCompiler(({ schema }) => serializerOf(schema as object))
  app.setErrorHandler(answerFailure)
}

const serializers = new Map<unknown, (value: unknown) => string>()

/** One for each title: descriptions differ from place to place. */
function serializerOf(schema: { readonly title?: string }): (value: unknown) => string {
  const key = schema.title ?? schema
  const serializer = serializers.get(key) ?? fastJsonStringify(schema)
  serializers.set(key, serializer)
  return serializer
}

/** Answers with a value by the route's schema for this status. */
export function answer(reply: FastifyReply, value: unknown): FastifyReply {
  return answerText(reply, write(reply, value))
}

/** Like {@link answer}, for a value that may be long. @throws RequestError `too-many-bytes` */
export function answerCounted(reply: FastifyReply, value: unknown, { hold }: HeldBytes): FastifyReply {
  const text = write(reply, value)
  if (text.length < countedBytesMin) return answerText(reply, text)
  const bytes = Buffer.from(text)
  hold(reply.raw, bytes.length)
  return reply.header('content-type', 'application/json').send(bytes)
}

/** Answers 304. Of no body at all, Fastify's HEAD would say that the plant has 0 bytes (RFC 9110, 8.6). */
export function answerNotModified({ method }: FastifyRequest, reply: FastifyReply): FastifyReply {
  return reply.code(304).send(method === 'HEAD' ? Readable.from([]) : undefined)
}

function write(reply: FastifyReply, value: unknown): string {
  return reply.serializeInput(value as Record<string, unknown>, `${reply.statusCode}`) as string
}

/**
 * Sends finished JSON, which no hook of a service around can change before it is serialized. Fastify would add a charset,
 * which JSON does not have (RFC 8259, 11), unless the answer has a serializer.
 */
export function answerText(reply: FastifyReply, text: string): FastifyReply {
  return reply.header('content-type', 'application/json').serializer(unchanged).send(text)
}

const unchanged = (text: string) => text

export const writeFailure = serializerOf(FailureBody)

export function answerFailure(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { status, headers, body, isDefect } = toFailure(error)
  if (isDefect) request.log.error({ reqId: request.id, err: error }, 'failed to answer')
  // As often as clients ask: the owner of the store logs once why it fails.
  else if (status === 503) request.log.debug({ reqId: request.id, err: error }, 'could not serve')
  request[errorNumber] = body.error
  // Not every failure has passed the hook that sets it.
  reply.header(requestIdField, request.id)
  const kept = request[lineCounts] === undefined ? '' : '; plants of the lines before may have been created'
  return answerText(
    reply.code(status).headers(headers),
    writeFailure({ ...body, message: `${body.message}${kept}` }),
  )
}
