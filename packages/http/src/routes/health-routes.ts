import type { FastifyInstance } from 'fastify'
import { answer } from '../answer/answer.ts'
import { RequestError } from '../answer/failures.ts'
import { writeStatus } from '../answer/writers.ts'
import { refuseOtherMethods } from './other-methods.ts'

export interface OpenPagesOptions {
  /** Rejects when the store can't serve at the moment. */
  readonly check: () => Promise<void>
  /** Whether the server has begun to stop. */
  readonly isDraining: () => boolean
  /** The interface description, as JSON text. */
  readonly description: string
}

/** The pages that need no token: whether the process answers, whether it can serve, and what it serves. */
export function addOpenPages(
  app: FastifyInstance,
  { check, isDraining, description }: OpenPagesOptions,
): void {
  app.get('/healthz', (_request, reply) => answer(reply, writeStatus, { status: 'ok' }))
  app.get('/readyz', async (_request, reply) => {
    if (isDraining()) throw new RequestError('draining', 'the server is about to stop')
    await check()
    return answer(reply, writeStatus, { status: 'ready' })
  })
  app.get('/openapi.json', (_request, reply) => answer(reply, String, description))

  for (const url of ['/healthz', '/readyz', '/openapi.json']) refuseOtherMethods(app, url, ['GET', 'HEAD'])
}
