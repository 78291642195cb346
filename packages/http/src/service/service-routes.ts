import { gzipSync } from 'node:zlib'
import { Type } from 'typebox'
import { RequestError } from '../errors/error-numbers.ts'
import { about } from '../shared-schemas.ts'
import type { RouteSchema, Routes } from '../typed-routes.ts'
import { negotiateGzip, open } from './page-routes.ts'

export interface Probes {
  /** Rejects while the store cannot serve. */
  readonly check: () => Promise<void>
  /** Returns the metrics in the Prometheus text format. */
  readonly metrics: () => Promise<string>
}

export interface ServiceRoutesOptions extends Probes {
  readonly isDraining: () => boolean
  /** Returns the interface description as JSON. */
  readonly describe: () => string
}

const metricsMediaType = 'text/plain; version=0.0.4; charset=utf-8'

export const Status = Type.Object(
  { status: Type.String() },
  { $id: 'Status', examples: [{ status: 'ok' }] },
)

const tags = ['service']

/** Describes a route that says whether something holds. */
const probe = (operationId: string, summary: string) => ({
  operationId,
  tags,
  summary,
  response: { 200: about(summary, Status) },
})

const health = probe('health', 'Liveness: the process responds')
const readiness = probe('readiness', 'Readiness: the service can serve')

const describe = {
  operationId: 'describe',
  tags,
  summary: 'This description',
  response: {
    200: about('This description', Type.Unsafe<string>({ type: 'object' })),
  },
} satisfies RouteSchema

const metrics = {
  operationId: 'metrics',
  tags,
  summary: 'Metrics',
  description: 'Needs a token with the scope `metrics:read`.',
  response: {
    200: {
      description: 'Metrics in the Prometheus text format',
      content: {
        [metricsMediaType]: {
          schema: Type.String({ examples: ['plant_store_ready 1\n'] }),
        },
      },
    },
  },
} satisfies RouteSchema

/**
 * Adds the routes about the service itself. They ignore queries, because monitors add
 * some.
 */
export function addServiceRoutes(routes: Routes, options: ServiceRoutesOptions): void {
  // The description never changes while the server runs.
  let description: string | undefined
  let compressed: Buffer | undefined

  routes.get('/healthz', { ...open, schema: health }, async () => ({
    status: 'ok',
  }))

  routes.get('/readyz', { ...open, schema: readiness }, async () => {
    if (options.isDraining()) {
      throw new RequestError('draining', 'the server is shutting down')
    }
    await options.check()
    return { status: 'ready' }
  })

  routes.get('/openapi.json', { ...open, schema: describe }, async (request, reply) => {
    reply.type('application/json')
    description ??= options.describe()
    if (!negotiateGzip(request, reply)) {
      return description
    }
    compressed ??= gzipSync(description)
    reply.header('content-encoding', 'gzip')
    // The type is that of the JSON before it is compressed.
    return compressed as unknown as string
  })

  routes.get(
    '/metrics',
    { config: { scope: 'metrics:read' }, schema: metrics },
    async (_request, reply) => {
      reply.type(metricsMediaType)
      return options.metrics()
    },
  )
}
