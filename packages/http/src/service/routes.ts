import type { FastifyInstance } from 'fastify'
import { answerText } from '../answer/answer.ts'
import { RequestError } from '../errors/failures.ts'
import { addRoutes, type Handlers, type Pipeline } from '../pipeline.ts'
import { metricsMediaType, type operations, service } from './operations.ts'
import { addPages } from './pages.ts'

export interface Probes {
  /** Rejects while the store cannot serve. */
  readonly check: () => Promise<void>
  /** Returns the metrics in the Prometheus text format. */
  readonly metrics: () => Promise<string>
}

interface ServiceRoutesOptions extends Probes {
  readonly isDraining: () => boolean
  readonly description: string
  /** Of the API reference, with a slash at the end. */
  readonly docsFolder: URL
  /** The folder of the page at `/browse`, with a slash at the end. Without it there is none. */
  readonly page?: URL | undefined
}

/** Adds what is about the service itself, and the pages. */
export function addServiceRoutes(
  app: FastifyInstance,
  pipeline: Pipeline,
  { check, metrics, isDraining, description, docsFolder, page }: ServiceRoutesOptions,
): void {
  const handlers: Handlers<typeof operations> = {
    health: async ({ answer }) => answer(200, { status: 'ok' }),
    async readiness({ answer }) {
      if (isDraining()) {
        throw new RequestError('draining', 'the server is shutting down')
      }
      await check()
      return answer(200, { status: 'ready' })
    },
    describe: async ({ reply }) => answerText(reply, description),
    metrics: async ({ reply }) =>
      reply.header('content-type', metricsMediaType).send(await metrics()).raw,
  }
  addRoutes(app, service, handlers, pipeline)

  addPages(app, docsFolder, page)
}
