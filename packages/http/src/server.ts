import { METHODS } from 'node:http'
import type { Gate } from '@plant-store/access'
import type { PlantUseCases } from '@plant-store/domain'
import { type FastifyInstance, fastify } from 'fastify'
import { closeAfterEarlyAnswers, finishAnswers } from './answers.ts'
import { describeInterface } from './description.ts'
import { createErrorHandler, type FailureLog } from './error-handler.ts'
import type { ServerLimits } from './limits.ts'
import { addPlantRoutes } from './plants/plant-routes.ts'
import { checkAccess, createAuthentication } from './request/authenticate.ts'
import { allowOrigins, answerPreflights } from './request/cors.ts'
import { requestIdField } from './request/facts.ts'
import { checkHeaderSections } from './request/header-section.ts'
import {
  type OnAnswer,
  observeRequests,
  type RequestTracer,
  reportOnceAnswered,
  requestId,
} from './request/log.ts'
import { createPageReader } from './request/page-reader.ts'
import {
  collectRoutes,
  originForm,
  refuseOtherMethods,
  refuseUnknownPaths,
} from './request/paths.ts'
import { createRefusalAnswers } from './request/refusals.ts'
import { trustNearest } from './request/trusted-proxies.ts'
import { addPages } from './service/page-routes.ts'
import { addServiceRoutes, type Probes } from './service/service-routes.ts'
import { createBudget } from './wire/budget.ts'
import { createNodeServer } from './wire/node-server.ts'
import { prepareStop } from './wire/stop.ts'

export { failures } from './errors/error-numbers.ts'
export type { ServerLimits } from './limits.ts'
export type { AnsweredRequest, RequestTrace } from './request/facts.ts'
export type { RequestTracer } from './request/log.ts'
export { stopListening, stopServer } from './wire/stop.ts'

/** The use cases, and what the server needs. */
export interface ServerOptions extends Probes {
  readonly plants: PlantUseCases
  /** The same use cases, but plants that they add are not announced to webhooks. */
  readonly unannounced: PlantUseCases
  readonly gate: Gate
  readonly logger: FailureLog
  /**
   * The folder of the page at `/browse`, with a slash at the end. Without a folder there
   * is no page.
   */
  readonly page: URL | undefined
  /** The origins whose pages may call the service from a browser. */
  readonly corsOrigins: readonly string[]
  readonly traceRequest: RequestTracer | undefined
  /** Whether a stop is near, so that `/readyz` fails while all else still works. */
  readonly isLeaving: () => boolean
  /** Called for each request once it is answered, with the members of its log line. */
  readonly onAnswer: OnAnswer
  /** The public URL: the description names it, and every route is under its path. */
  readonly baseUrl: URL | undefined
  readonly limits: ServerLimits
  /** Addresses or networks of proxies whose X-Forwarded-For is trusted. */
  readonly trustedProxies: readonly string[]
}

/** Returns the whole service over HTTP, not yet listening. */
export function createServer(options: ServerOptions): FastifyInstance {
  const { corsOrigins, onAnswer, isLeaving, limits } = options
  const app = createFastify(options)
  const authenticate = createAuthentication(options.gate)
  // The budgets are apart, so that slow uploads do not use up the memory for answers.
  const bodyBudget = createBudget(limits.heldBytesMax / 2)
  const answerBudget = createBudget(limits.heldBytesMax / 2)
  let isDraining = false
  /** Aborted when batches that still arrive and pages that wait must end. */
  const ending = new AbortController()
  app.addHook('preClose', async () => {
    isDraining = true
    await prepareStop(app.server)
    setTimeout(() => ending.abort(), limits.batchRequestDrainMs).unref()
  })

  app.decorateRequest('facts', null)
  // A request is judged in the order of these hooks, and then by those of its route.
  observeRequests(app, onAnswer, options.traceRequest)
  if (corsOrigins.length > 0) {
    answerPreflights(app)
  }
  checkHeaderSections(app)
  checkAccess(app, authenticate)
  refuseUnknownPaths(app)
  finishAnswers(app, answerBudget)
  closeAfterEarlyAnswers(app)

  const { href = '', pathname = '' } = options.baseUrl ?? {}
  const serverUrl = withoutLastSlash(href) || '/'
  app.register(
    async prefixedApp => {
      const routes = collectRoutes(prefixedApp)
      addPlantRoutes(prefixedApp, {
        ...options,
        authenticate,
        readPage: createPageReader(answerBudget, limits.pageTextBytesMax, ending.signal),
        bodyBudget,
        ending: ending.signal,
      })
      // Behind those of plants, in the description too.
      prefixedApp.register(async instance =>
        addServiceRoutes(instance, {
          ...options,
          isDraining: () => isLeaving() || isDraining,
          describe: () => describeInterface(routes, serverUrl),
        }),
      )
      // The build writes this folder. The path is right for the sources and for a bundle.
      addPages(prefixedApp, new URL('../dist/docs/', import.meta.url), options.page)
      prefixedApp.after(() => refuseOtherMethods(prefixedApp, routes))
    },
    { prefix: withoutLastSlash(pathname) },
  )
  return app
}

/** Returns Fastify with the options that the service needs, without routes. */
function createFastify(options: ServerOptions): FastifyInstance {
  const { corsOrigins, trustedProxies, onAnswer, limits } = options
  const handleError = createErrorHandler(options.logger)
  // No logger is passed, because Fastify would create a child logger and several
  // listeners for each request.
  const app = fastify({
    genReqId: requestId,
    trustProxy: trustedProxies.length > 0 && trustNearest(trustedProxies),
    // Without a factory, Fastify opens a second server for localhost with other options.
    serverFactory: handle =>
      createNodeServer(
        limits,
        createRefusalAnswers(onAnswer),
        allowOrigins(corsOrigins, handle),
      ),
    // `createNodeServer` handles errors of clients.
    clientErrorHandler: () => {},
    // Each connection gets one more answer, which says that it is the last.
    return503OnClosing: false,
    routerOptions: {
      maxParamLength: limits.headerBytesMax,
      // `readQueries` parses the queries of plants, and others are ignored.
      querystringParser: () => noQuery,
    },
    rewriteUrl: originForm,
    // The domain judges what is sent, so nothing is compiled to validate.
    schemaController: { compilersFactory: { buildValidator: () => noValidator } },
    // Hooks do not run for a target that cannot be routed.
    frameworkErrors(error, request, reply) {
      reply.header(requestIdField, request.id)
      reportOnceAnswered(request, reply, onAnswer)
      reply.raw.setHeader('connection', 'close')
      handleError(error, request, reply)
    },
  })
  // A path answers 405 to every method that Node parses, so Fastify must know them all.
  for (const method of METHODS) {
    if (!app.supportedMethods.includes(method)) {
      app.addHttpMethod(method)
    }
  }
  app.setErrorHandler(handleError)
  // Routes that read bodies add the parsers of their media types.
  app.removeAllContentTypeParsers()
  return app
}

/** Fastify skips a part of a request for which there is no validator. */
const noValidator = () => undefined as never

const noQuery = Object.freeze({})

function withoutLastSlash(text: string) {
  return text.replace(/\/$/, '')
}
