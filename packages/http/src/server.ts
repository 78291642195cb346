import { METHODS } from 'node:http'
import proxyAddr from '@fastify/proxy-addr'
import type { Gate } from '@plant-store/access'
import { type FastifyBaseLogger, type FastifyInstance, fastify, LogController } from 'fastify'
import { answerBySchemas } from './answer/answer.ts'
import type { AnsweredRequest } from './answered-request.ts'
import { allowOrigins, answerPreflights } from './connection/cors.ts'
import { createNodeServer } from './connection/node-server.ts'
import { prepareStop } from './connection/stop.ts'
import { answerFailure, type UseCases } from './entities.ts'
import { defaultServerLimits, type ServerLimits } from './limits.ts'
import { describeRoutes } from './openapi/description.ts'
import { createPipeline } from './pipeline.ts'
import { storeRoutes } from './plugin.ts'
import { checkHeaders } from './request/checks.ts'
import {
  createRequestLog,
  logOnceAnswered,
  logRequests,
  type RequestTracer,
  requestId,
} from './request/log.ts'
import { createThrottle, withoutPort } from './request/wrong-tokens.ts'
import { addServiceRoutes, type Probes } from './service/routes.ts'

export type { AnsweredRequest, RequestTrace } from './answered-request.ts'
export { stopListening, stopServer } from './connection/stop.ts'
export type { UseCases } from './entities.ts'
export { defaultServerLimits, type ServerLimits } from './limits.ts'
export type { RequestTracer } from './request/log.ts'

/** The use cases of each entity that is to be served, by its name, and what the server needs. */
export interface ServerOptions extends Partial<UseCases>, Probes {
  readonly gate: Gate
  readonly logger: FastifyBaseLogger
  /** The origins whose pages may call the service from a browser. */
  readonly corsOrigins?: readonly string[]
  readonly traceRequest?: RequestTracer
  readonly onAnswer?: (answered: AnsweredRequest) => void
  /** The public URL: the description names it, and every route is under its path. */
  readonly baseUrl?: URL
  /** By default {@link defaultServerLimits}. */
  readonly limits?: Partial<ServerLimits>
  /** Addresses or networks of proxies whose X-Forwarded-For is trusted. */
  readonly trustedProxies?: readonly string[]
  /** The folder of the page at `/browse`, with a slash at the end. Without it there is none. */
  readonly page?: URL
  /** Shared by threads that count wrong tokens together, eight bytes a network. */
  readonly wrongTokenCounts?: SharedArrayBuffer
}

/** Returns the whole service over HTTP, not yet listening. */
export function createServer(options: ServerOptions): FastifyInstance {
  const { node } = process.versions
  if (Number.parseInt(node, 10) < 24)
    throw new Error(`@plant-store/http needs Node 24 or later, and this is Node ${node}`)
  const { gate, check, logger, metrics, baseUrl, limits: changed, traceRequest, ...others } = options
  const {
    corsOrigins = [],
    trustedProxies = [],
    onAnswer = () => {},
    wrongTokenCounts,
    page,
    ...useCases
  } = others
  const limits = { ...defaultServerLimits, ...changed }
  const prefix = withoutLastSlash(baseUrl?.pathname ?? '')
  const serverUrl = baseUrl === undefined ? '/' : withoutLastSlash(baseUrl.href)
  const throttle = createThrottle(limits.wrongTokensMax, wrongTokenCounts)
  const logRequest = createRequestLog(logger, onAnswer)
  const app = fastify({
    // At this level Fastify logs only that it listens, once in each thread.
    loggerInstance: Object.create(logger, { info: { value: () => {} } }),
    // `logRequests` writes one line a request. A child logger for each would cost more than the line.
    logController: new LogController({ disableRequestLogging: true }),
    childLoggerFactory: () => logger,
    genReqId: requestId,
    bodyLimit: limits.bodyBytesMax,
    trustProxy: trustedProxies.length > 0 && trustNear(trustedProxies),
    // Otherwise Fastify opens a second server for localhost, without these options.
    serverFactory: handle => createNodeServer(limits, logRequest, allowOrigins(corsOrigins, handle)),
    // `createNodeServer` handles them.
    clientErrorHandler: () => {},
    // Requests sent before the shutdown are still answered.
    return503OnClosing: false,
    routerOptions: { maxParamLength: limits.headerBytesMax, querystringParser: () => ({}) },
    rewriteUrl: ({ url }) => originForm(url as string),
    // No hook has seen a target that cannot be routed.
    frameworkErrors: (error, request, reply) => {
      logOnceAnswered(request, reply, logRequest)
      answerFailure(error, request, reply.header('connection', 'close'))
    },
  })
  let isDraining = false
  app.addHook('preClose', async () => {
    isDraining = true
    await prepareStop(app.server)
  })
  // So that a path answers 405 to every method that Node parses.
  for (const method of METHODS) if (!app.supportedMethods.includes(method)) app.addHttpMethod(method)
  answerBySchemas(app, answerFailure)
  logRequests(app, logRequest, traceRequest)
  if (corsOrigins.length > 0) answerPreflights(app)
  checkHeaders(app)

  const description = describeRoutes(app, serverUrl)
  app.register((serviceApp, _options, done) => {
    const pipeline = createPipeline(serviceApp, { gate, throttle, limits }, answerFailure)
    serviceApp.setNotFoundHandler(() => {
      throw new Error('`checkRequests` must answer')
    })
    // Written by the build. The path is right for the sources and for a bundle.
    const docsFolder = new URL('../dist/docs/', import.meta.url)
    const service = { check, metrics, isDraining: () => isDraining, description, docsFolder, page }
    serviceApp.register(async prefixed => addServiceRoutes(prefixed, pipeline, service), { prefix })
    done()
  })
  app.register(storeRoutes, { ...useCases, prefix, gate, throttle, limits })
  return app
}

/** Proxies in a row. Following a long list from a client would take milliseconds. */
const proxyHopsMax = 16

function trustNear(proxies: readonly string[]): (address: string, hop: number) => boolean {
  const isTrusted = proxyAddr.compile([...proxies])
  return (address, hop) => hop < proxyHopsMax && isTrusted(withoutPort(address), hop)
}

const withoutLastSlash = (text: string) => text.replace(/\/$/, '')

/** Removes the server's name, which a target may include (RFC 9112, 3.2.2). */
function originForm(target: string): string {
  if (target.startsWith('/')) return target
  return /^https?:\/\/[^/?#]*(\/.*)/i.exec(target)?.[1] ?? `/${target}`
}
