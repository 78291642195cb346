import { readFileSync } from 'node:fs'
import type { FastifyInstance } from 'fastify'
import { answerText } from '../answer/answer.ts'
import { RequestError } from '../errors/failures.ts'
import { addRoutes, type Handlers, type Pipeline } from '../pipeline.ts'
import { failOtherMethods } from '../request/checks.ts'
import { metricsMediaType, type operations, service } from './operations.ts'

export interface Probes {
  /** Rejects while the store cannot serve. */
  readonly check: () => Promise<void>
  /** Returns the metrics in the Prometheus text format. */
  readonly metrics: () => Promise<string>
}

interface ServiceRoutesOptions extends Probes {
  readonly isDraining: () => boolean
  readonly description: () => string
  /** Of the API reference, with a slash at the end. */
  readonly docsFolder: URL
}

/** Adds what is about the service itself, and the API reference. */
export function addServiceRoutes(
  app: FastifyInstance,
  pipeline: Pipeline,
  { check, metrics, isDraining, description, docsFolder }: ServiceRoutesOptions,
): void {
  const handlers: Handlers<typeof operations> = {
    health: ({ answer }) => answer(200, { status: 'ok' }),
    async readiness({ answer }) {
      if (isDraining()) throw new RequestError('draining', 'the server is shutting down')
      await check()
      return answer(200, { status: 'ready' })
    },
    describe: ({ reply }) => answerText(reply, description()),
    metrics: async ({ reply }) => reply.header('content-type', metricsMediaType).send(await metrics()),
  }
  addRoutes(app, service, handlers, pipeline)

  const open = { config: { scope: null } }
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
  for (const url of [...Object.keys(docsFiles), '/', '/docs/']) failOtherMethods(app, url, ['GET'], null)
}

const docsFiles = {
  '/docs': ['docs.html', 'text/html; charset=utf-8'],
  '/docs/page.js': ['page.js', 'text/javascript; charset=utf-8'],
  '/docs/page.css': ['page.css', 'text/css; charset=utf-8'],
  '/docs/swagger-ui-bundle.js': ['swagger-ui-bundle.js', 'text/javascript; charset=utf-8'],
  '/docs/swagger-ui.css': ['swagger-ui.css', 'text/css; charset=utf-8'],
} as const

/** The API reference runs only these files and connects only to its own origin. */
const docsHeaders = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-cache',
}
