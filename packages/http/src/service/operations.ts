import { Type } from 'typebox'
import {
  aroundRequest,
  type Operation,
  type Operations,
  type Section,
} from '../openapi/operation.ts'
import { about, named } from '../openapi/schemas.ts'

export const metricsMediaType = 'text/plain; version=0.0.4; charset=utf-8'

const Status = named('Status', Type.Object({ status: Type.String() }), { status: 'ok' })

const open = <Schema extends object>(url: string, summary: string, schema: Schema) =>
  ({
    method: 'GET',
    url,
    scope: null,
    ignoresQuery: true,
    summary,
    response: { 200: about(summary, schema) },
    failureStatuses: [400, 408, 417, 431, 500, 503],
  }) as const satisfies Operation

export const operations = {
  health: open('/healthz', 'Liveness: the process responds', Status),
  readiness: open('/readyz', 'Readiness: the service can serve', Status),
  describe: open('/openapi.json', 'This description', { type: 'object' }),
  metrics: {
    method: 'GET',
    url: '/metrics',
    scope: 'metrics:read',
    ignoresQuery: true,
    summary: 'Metrics',
    description: 'Needs a token with the scope `metrics:read`.',
    response: {
      200: {
        description: 'Metrics in the Prometheus text format',
        content: {
          [metricsMediaType]: { schema: Type.String(), example: 'plant_store_ready 1\n' },
        },
      },
    },
    failureStatuses: aroundRequest,
  },
} as const satisfies Operations

export const service: Section = {
  tag: {
    name: 'service',
    description: 'The service itself. Only the metrics need a token',
  },
  operations,
  schemas: { Status },
}
