import proxyAddr from '@fastify/proxy-addr'
import type { Gate } from '@plant-store/access'
import type { PlantStore } from '@plant-store/domain'
import {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  fastify,
  LogController,
} from 'fastify'
import { answerFailure } from './answer/answer.ts'
import { allowOrigins } from './answer/cors.ts'
import { describeRoutes } from './answer/description.ts'
import { RequestError } from './answer/failures.ts'
import { serializeBySchemas } from './answer/serializers.ts'
import { createAuthentication } from './auth/authenticate.ts'
import { createThrottle } from './auth/throttle.ts'
import { openServer } from './connection/connection.ts'
import { announceStop, isDraining } from './connection/drain.ts'
import { defaultServerLimits, type ServerLimits } from './limits.ts'
import { checkHeaders } from './request/door.ts'
import { requestId, requestIdField } from './request/request-id.ts'
import { createRequestLog } from './request/request-log.ts'
import { type RequestTracer, traceRequests } from './request/request-trace.ts'
import { addDocs } from './routes/docs-routes.ts'
import { addHealthRoutes } from './routes/health-routes.ts'
import { type AnsweredRequest, addMetrics } from './routes/metrics-route.ts'
import { knowAllMethods, lacksScope } from './routes/other-methods.ts'
import { plantRoutes } from './routes/plant-routes.ts'

export interface ServerOptions {
  readonly store: PlantStore
  readonly gate: Gate
  /** Rejects when the store can't serve at the moment. */
  readonly check: () => Promise<void>
  readonly logger: FastifyBaseLogger
  /** The figures of the service, in the text format of Prometheus. */
  readonly metrics: () => Promise<string>
  /** Whose pages may call the service from a browser; nobody's unless given. */
  readonly corsOrigins?: readonly string[]
  readonly traceRequest?: RequestTracer
  readonly onAnswer?: (answered: AnsweredRequest) => void
  /** What clients see of this server: it is named in the description, and its path is put before every route. */
  readonly baseUrl?: URL
  /** Those that aren't given are {@link defaultServerLimits}. */
  readonly limits?: Partial<ServerLimits>
  /**
   * Addresses or networks of the proxies in front, whose X-Forwarded-For tells the address of a client; without them,
   * it is the address of whoever is connected.
   */
  readonly trustedProxies?: readonly string[]
  /** Where servers in several threads count wrong tokens together; eight bytes a network. Each counts alone without it. */
  readonly wrongTokenCounts?: SharedArrayBuffer
}

/** The whole service over HTTP, not yet listening. */
export function createServer({
  store,
  gate,
  check,
  logger,
  metrics,
  corsOrigins = [],
  traceRequest,
  onAnswer = () => {},
  baseUrl,
  limits: given = {},
  trustedProxies = [],
  wrongTokenCounts,
}: ServerOptions): FastifyInstance {
  const limits = { ...defaultServerLimits, ...given }
  const prefix = withoutLastSlash(baseUrl?.pathname ?? '')
  const serverUrl = baseUrl === undefined ? '/' : withoutLastSlash(baseUrl.href)
  const logRequest = createRequestLog(logger, onAnswer)
  /** Once the answer has been handed over, or can't be any more. Fastify tells only of the former. */
  const logOnceAnswered = (request: FastifyRequest, reply: FastifyReply) => {
    const log = () => {
      const { method, routeOptions, tokenName, plantId } = request
      const { statusCode: status, elapsedTime: ms } = reply
      const route = routeOptions.url
      const trace = traceOf?.(request)
      trace?.end({ method, route, status })
      logRequest({
        reqId: request.id,
        client: request.ip,
        method,
        route,
        status,
        error: request.errorNumber,
        token: tokenName,
        plantId: plantId?.toString(),
        traceId: trace?.traceId,
        ms,
      })
    }
    if (reply.raw.destroyed) log()
    else reply.raw.on('close', log)
  }
  const app = fastify({
    loggerInstance: logger,
    // One line a request, below; a child logger for each request would cost more than the line.
    logController: new LogController({ disableRequestLogging: true }),
    childLoggerFactory: () => logger,
    genReqId: requestId,
    bodyLimit: limits.bodyBytesMax,
    trustProxy: trustedProxies.length > 0 && trustNear(trustedProxies),
    // Left to itself Fastify gives localhost a server for each of its addresses, and tells only one of them all this.
    serverFactory: route => openServer(limits, logRequest, route),
    // That is done there.
    clientErrorHandler: () => {},
    // What was sent before the server began to stop is still answered.
    return503OnClosing: false,
    routerOptions: { maxParamLength: limits.headerBytesMax, querystringParser: () => ({}) },
    rewriteUrl: ({ url = '/' }) => originForm(url),
    frameworkErrors: (error, request, reply) => {
      logOnceAnswered(request, reply)
      answerFailure(error, request, reply)
    },
  })
  app.addHook('preClose', async () => announceStop(app.server))

  knowAllMethods(app)
  app.decorateRequest('tokenName', '')
  app.decorateRequest('errorNumber', undefined)
  app.setErrorHandler(answerFailure)
  serializeBySchemas(app)
  const description = describeRoutes(app, serverUrl)
  const throttle = createThrottle(limits.wrongTokensMax, wrongTokenCounts)
  const authenticate = createAuthentication(gate, throttle)
  const traceOf = traceRequest && traceRequests(app, traceRequest)
  if (corsOrigins.length > 0) allowOrigins(app, corsOrigins)
  app.addHook('onRequest', (request, reply, done) => {
    reply.header(requestIdField, request.id)
    // The socket remembers the address once it was asked for, and can't tell it any more when the client has left.
    void request.ip
    checkHeaders(request.raw)
    if (!request.is404) return done()
    const refuse = () => done(new RequestError('no-such-path', 'there is nothing at this path'))
    authenticate(request, reply, error => (error === undefined || lacksScope(error) ? refuse() : done(error)))
  })
  app.addHook('onSend', (request, reply, _payload, done) => {
    logOnceAnswered(request, reply)
    done()
  })

  app.register(
    async routes => {
      addHealthRoutes(routes, {
        check,
        isDraining: () => isDraining(app.server),
        description,
      })
      // Beside this module, also in a program that is bundled.
      addDocs(routes, new URL('./docs/', import.meta.url))
      addMetrics(routes, { gate, metrics, throttle })
      routes.register(plantRoutes, { store, gate, throttle, limits })
    },
    { prefix },
  )
  return app
}

/** Proxies in front of each other, at most: a client may write a list of them that takes milliseconds to follow. */
const proxyHopsMax = 16

function trustNear(proxies: readonly string[]): (address: string, hop: number) => boolean {
  const isTrusted = proxyAddr.compile([...proxies])
  return (address, hop) => hop < proxyHopsMax && isTrusted(address, hop)
}

const withoutLastSlash = (text: string) => text.replace(/\/$/, '')

/** A target may name the server too (RFC 9112, 3.2.2); what is routed is the rest. */
function originForm(target: string): string {
  if (target.startsWith('/')) return target
  return /^https?:\/\/[^/?#]*(\/.*)$/i.exec(target)?.[1] ?? `/${target}`
}
