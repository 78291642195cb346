import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import { aroundRequest, failing, operation } from '../answer/operation.ts'
import { failOtherMethods, open } from './other-methods.ts'

const metricsMediaType = 'text/plain; version=0.0.4; charset=utf-8'

/** The figures of the service, in the text format of Prometheus. */
export function addMetrics(app: FastifyInstance, metrics: () => Promise<string>): void {
  app.get(
    '/metrics',
    {
      config: { tokenScope: 'metrics:read' },
      schema: operation({
        operationId: 'metrics',
        tags: ['service'],
        summary: 'The figures of the service',
        description: 'For a token with the scope `metrics:read`, in the text format of Prometheus.',
        response: {
          200: { description: 'The figures', content: { [metricsMediaType]: { schema: Type.String() } } },
          ...failing(...aroundRequest),
        },
      }),
    },
    async (_request, reply) => reply.header('content-type', metricsMediaType).send(await metrics()),
  )
  failOtherMethods(app, '/metrics', ['GET', 'HEAD'], open)
}
