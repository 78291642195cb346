import type { FastifyReply, FastifyRequest } from 'fastify'
import { toFailure } from './errors/error-response.ts'
import { changedTagAdvice } from './request/conditions.ts'
import { factsOf } from './request/facts.ts'

/** Tells of failures that are worth a line in the log. */
export type FailureLog = Readonly<
  Record<'error' | 'debug', (details: object, message: string) => void>
>

/** Returns Fastify's error handler. */
export function createErrorHandler(logger: FailureLog) {
  return (cause: unknown, request: FastifyRequest, reply: FastifyReply): void => {
    const { status, headers, body, isDefect } = toFailure(cause)
    const details = { reqId: request.id, err: cause }
    if (isDefect) {
      logger.error(details, 'failed to answer')
    } else if (status === 503) {
      // Clients can cause any number of these. The main thread logs an outage once.
      logger.debug(details, 'could not serve')
    }

    const facts = factsOf(request)
    facts.errorNumber = body.error
    const advice = status === 412 ? changedTagAdvice(request.headers['if-match']) : ''
    const message = `${body.message}${facts.failureSuffix ?? ''}${advice}`
    // Fastify closes after each fault of a body. `closeAfterEarlyAnswers` does only if
    // the rest of it is still on its way. What Node's response already has, stays.
    if (!reply.raw.hasHeader('connection')) {
      reply.removeHeader('connection')
    }
    reply
      .code(status)
      .headers(headers)
      .type('application/json')
      // Without it, Fastify would add a charset. `finishAnswers` removes it, but does not
      // run for a target that cannot be routed.
      .serializer(JSON.stringify)
      .send({ error: body.error, message })
  }
}
