import type { Gate } from '@plant-store/access'
import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import { failing, failingAroundRequest, operation } from '../answer/operation.ts'
import { createAuthentication } from '../auth/authenticate.ts'
import type { Throttle } from '../auth/throttle.ts'
import { refuseOtherMethods } from './other-methods.ts'

/** A request that was answered, refusals included. */
export interface AnsweredRequest {
  /** `undefined` where it could not be read. */
  readonly method: string | undefined
  /** The pattern of its path; `undefined` where there is nothing at the path. */
  readonly route: string | undefined
  readonly status: number
  /** From the arrival of its header section until the answer was handed over. */
  readonly ms: number
}

export interface MetricsOptions {
  readonly gate: Gate
  readonly throttle?: Throttle
  /** The figures in the text format of Prometheus, version 0.0.4. */
  readonly metrics: () => Promise<string>
}

const metricsMediaType = 'text/plain; version=0.0.4; charset=utf-8'

const readMetrics = operation({
  operationId: 'metrics',
  tags: ['service'],
  summary: 'The figures of the service',
  description: 'For a token with the scope `metrics:read`, in the text format of Prometheus.',
  response: {
    200: { description: 'The figures', content: { [metricsMediaType]: { schema: Type.String() } } },
    ...failing(400),
    ...failingAroundRequest,
  },
})

/** The figures of the service, for who has the scope `metrics:read`. */
export function addMetrics(app: FastifyInstance, { gate, metrics, throttle }: MetricsOptions): void {
  const onRequest = createAuthentication(gate, throttle, () => 'metrics:read')
  app.get('/metrics', { onRequest, schema: readMetrics }, async (_request, reply) => {
    return reply.header('content-type', metricsMediaType).send(await metrics())
  })
  refuseOtherMethods(app, '/metrics', ['GET', 'HEAD'])
}
