import type { FastifyInstance } from 'fastify'
import { answer, answerText } from '../answer/answer.ts'
import { RequestError } from '../answer/failures.ts'
import { about, failing, operation } from '../answer/operation.ts'
import { Status } from '../answer/schemas.ts'
import { failOtherMethods, open } from './other-methods.ts'

export interface HealthRoutesOptions {
  /** Rejects when the store can't serve at the moment. */
  readonly check: () => Promise<void>
  /** Whether the server has begun to stop. */
  readonly isDraining: () => boolean
  /** The interface description, as JSON text. */
  readonly description: () => string
}

/** The pages that need no token: whether the process answers, whether it can serve, and what it serves. */
export function addHealthRoutes(
  app: FastifyInstance,
  { check, isDraining, description }: HealthRoutesOptions,
): void {
  app.get('/healthz', openPage('health', 'Whether the process answers', Status), (_request, reply) =>
    answer(reply, { status: 'ok' }),
  )
  app.get('/readyz', openPage('readiness', 'Whether the service can serve', Status), async (_, reply) => {
    if (isDraining()) throw new RequestError('draining', 'the server is about to stop')
    await check()
    return answer(reply, { status: 'ready' })
  })
  app.get('/openapi.json', openPage('describe', 'This description', { type: 'object' }), (_request, reply) =>
    answerText(reply, description()),
  )

  for (const url of ['/healthz', '/readyz', '/openapi.json'])
    failOtherMethods(app, url, ['GET', 'HEAD'], open)
}

const openPage = (operationId: string, summary: string, schema: object) => ({
  ...open,
  schema: operation({
    operationId,
    tags: ['service'],
    summary,
    security: [],
    response: { 200: about(summary, schema), ...failing(400, 408, 417, 431, 500, 503) },
  }),
})
