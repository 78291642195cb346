import { readFileSync } from 'node:fs'
import type { FastifyPluginCallback } from 'fastify'
import { Type } from 'typebox'
import { answer, answerText } from '../answer/answer.ts'
import { about, aroundRequest, failing, operation } from '../answer/description.ts'
import { RequestError } from '../answer/failures.ts'
import { Status } from '../answer/schemas.ts'
import { failOtherMethods } from './other-methods.ts'

interface ServiceRoutesOptions {
  /** Rejects while the store cannot serve. */
  readonly check: () => Promise<void>
  readonly isDraining: () => boolean
  /** Returns the interface description as JSON text. */
  readonly description: () => string
  /** Returns the metrics in the Prometheus text format. */
  readonly metrics: () => Promise<string>
  /** The folder of the reference page's files, with a slash at the end. */
  readonly docsFolder: URL
}

/** Adds the service's own pages. Only the metrics need a token. */
export const serviceRoutes: FastifyPluginCallback<ServiceRoutesOptions> = (app, options, done) => {
  const { check, isDraining, description, metrics, docsFolder } = options
  app.get('/healthz', openPage('health', 'Liveness: the process responds', Status), (_request, reply) =>
    answer(reply, { status: 'ok' }),
  )
  app.get('/readyz', openPage('readiness', 'Readiness: the service can serve', Status), async (_, reply) => {
    if (isDraining()) throw new RequestError('draining', 'the server is shutting down')
    await check()
    return answer(reply, { status: 'ready' })
  })
  app.get('/openapi.json', openPage('describe', 'This description', { type: 'object' }), (_request, reply) =>
    answerText(reply, description()),
  )
  for (const [url, [file, mediaType]] of Object.entries(docsFiles)) {
    // One copy for all requests, however slowly clients read it.
    let content: Buffer | undefined
    app.get(url, open, (_request, reply) => {
      content ??= readFileSync(new URL(file, docsFolder))
      reply.headers({ ...docsHeaders, 'content-type': mediaType }).send(content)
    })
  }
  // Relative, as in `docs.html`: only the client knows the whole path.
  app.get('/', open, ({ url }, reply) => {
    const [path = ''] = url.split(/[?#]/, 1)
    return reply.redirect(path.endsWith('/') ? 'docs' : `${path.slice(path.lastIndexOf('/') + 1)}/docs`)
  })
  app.get('/docs/', open, (_request, reply) => reply.redirect('../docs'))
  app.get(
    '/metrics',
    {
      config: { tokenScope: 'metrics:read' },
      schema: operation({
        operationId: 'metrics',
        tags: ['service'],
        summary: 'Metrics',
        description: 'Needs a token with the scope `metrics:read`.',
        response: {
          200: {
            description: 'Metrics in the Prometheus text format',
            content: { [metricsMediaType]: { schema: Type.String(), example: 'plant_store_ready 1\n' } },
          },
          ...failing(...aroundRequest),
        },
      }),
    },
    async (_request, reply) => reply.header('content-type', metricsMediaType).send(await metrics()),
  )

  for (const url of [
    '/',
    '/docs/',
    '/healthz',
    '/readyz',
    '/openapi.json',
    ...Object.keys(docsFiles),
    '/metrics',
  ])
    failOtherMethods(app, url, ['GET', 'HEAD'], open)
  done()
}

const open = { config: { tokenScope: null } } as const

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

/** The files of the reference page. */
const docsFiles = {
  '/docs': ['docs.html', 'text/html; charset=utf-8'],
  '/docs/page.js': ['page.js', 'text/javascript; charset=utf-8'],
  '/docs/page.css': ['page.css', 'text/css; charset=utf-8'],
  '/docs/swagger-ui-bundle.js': ['swagger-ui-bundle.js', 'text/javascript; charset=utf-8'],
  '/docs/swagger-ui.css': ['swagger-ui.css', 'text/css; charset=utf-8'],
} as const

/** The page runs only these files and connects only to its own origin. */
const docsHeaders = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-cache',
}

const metricsMediaType = 'text/plain; version=0.0.4; charset=utf-8'
