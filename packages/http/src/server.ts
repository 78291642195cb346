import { METHODS } from 'node:http'
import proxyAddr from '@fastify/proxy-addr'
import type { Gate } from '@plant-store/access'
import { type FastifyBaseLogger, type FastifyInstance, fastify } from 'fastify'
import { answerFailure, serializerOf } from './answer/answer.ts'
import { allowOrigins, answerPreflights } from './connection/cors.ts'
import { createNodeServer } from './connection/node-server.ts'
import { prepareStop } from './connection/stop.ts'
import { addStoreRoutes, sections, toFailure, type UseCases } from './entities.ts'
import { defaultServerLimits, type ServerLimits } from './limits.ts'
import { describeInterface } from './openapi/description.ts'
import { createPipeline } from './pipeline.ts'
import {
  logOnceAnswered,
  logRequests,
  type RequestTracer,
  requestId,
} from './request/log.ts'
import type { AnsweredRequest } from './request-context.ts'
import { service } from './service/operations.ts'
import { addServiceRoutes, type Probes } from './service/routes.ts'

export { stopListening, stopServer } from './connection/stop.ts'
export { failures, type UseCases } from './entities.ts'
export { defaultServerLimits, type ServerLimits } from './limits.ts'
export type { RequestTracer } from './request/log.ts'
export type { AnsweredRequest, RequestTrace } from './request-context.ts'

/** The use cases of every entity, by its name, and what the server needs. */
export interface ServerOptions extends UseCases, Probes {
  readonly gate: Gate
  readonly logger: FastifyBaseLogger
  /** The origins whose pages may call the service from a browser. */
  readonly corsOrigins?: readonly string[]
  readonly traceRequest?: RequestTracer
  /** Called for each request once it is answered, with the members of its log line. */
  readonly onAnswer?: (answered: AnsweredRequest) => void
  /** The public URL: the description names it, and every route is under its path. */
  readonly baseUrl?: URL
  /** By default {@link defaultServerLimits}. */
  readonly limits?: Partial<ServerLimits>
  /** Addresses or networks of proxies whose X-Forwarded-For is trusted. */
  readonly trustedProxies?: readonly string[]
  /** The folder of the page at `/browse`, with a slash at the end. Without it there is none. */
  readonly page?: URL
}

/** Returns the whole service over HTTP, not yet listening. */
export function createServer(options: ServerOptions): FastifyInstance {
  const { node } = process.versions
  if (Number.parseInt(node, 10) < 24) {
    throw new Error(`@plant-store/http needs Node 24 or later, and this is Node ${node}`)
  }
  const { gate, check, logger, metrics, baseUrl, traceRequest, page } = options
  const { corsOrigins = [], trustedProxies = [], onAnswer = () => {} } = options
  const limits = { ...defaultServerLimits, ...options.limits }
  const prefix = withoutLastSlash(baseUrl?.pathname ?? '')
  const serverUrl = baseUrl === undefined ? '/' : withoutLastSlash(baseUrl.href)
  const failWith: FastifyInstance['errorHandler'] = (cause, request, reply) => {
    const failure = toFailure(cause)
    const details = { reqId: request.id, err: cause }
    if (failure.isDefect) {
      logger.error(details, 'failed to answer')
    }
    // Clients can cause any number of these. The main thread logs the reason once.
    else if (failure.status === 503) {
      logger.debug(details, 'could not serve')
    }
    answerFailure(failure, request, reply)
  }
  // Without a logger: Fastify would make one for each request, and listeners for how its answer ends.
  const app = fastify({
    genReqId: requestId,
    trustProxy: trustedProxies.length > 0 && trustNear(trustedProxies),
    // Otherwise Fastify opens a second server for localhost, without these options.
    serverFactory: handle =>
      createNodeServer(limits, onAnswer, allowOrigins(corsOrigins, handle)),
    // `createNodeServer` handles them.
    clientErrorHandler: () => {},
    // Requests sent before the shutdown are still answered.
    return503OnClosing: false,
    routerOptions: {
      maxParamLength: limits.headerBytesMax,
      querystringParser: () => noQuery,
    },
    rewriteUrl: ({ url }) => originForm(url as string),
    // Hooks do not run for a target that cannot be routed.
    frameworkErrors: (error, request, reply) => {
      logOnceAnswered(request, reply, onAnswer)
      failWith(error, request, reply.header('connection', 'close'))
    },
  })
  let isDraining = false
  const ending = new AbortController()
  app.addHook('preClose', async () => {
    isDraining = true
    await prepareStop(app.server)
    setTimeout(() => ending.abort(), limits.batchRequestDrainMs).unref()
  })
  // So that a path answers 405 to every method that Node parses.
  for (const method of METHODS) {
    if (!app.supportedMethods.includes(method)) {
      app.addHttpMethod(method)
    }
  }
  app.setSerializerCompiler(({ schema }) => serializerOf(schema as object))
  app.setErrorHandler(failWith)
  app.setNotFoundHandler(() => {
    throw new Error('`checkRequests` must answer')
  })
  logRequests(app, onAnswer, traceRequest)
  if (corsOrigins.length > 0) {
    answerPreflights(app)
  }

  const pipeline = createPipeline(app, { gate, limits, ending: ending.signal })
  const description = describeInterface([...sections, service], serverUrl)
  // Written by the build. The path is right for the sources and for a bundle.
  const docsFolder = new URL('../dist/docs/', import.meta.url)
  const probes = {
    check,
    metrics,
    isDraining: () => isDraining,
    description,
    docsFolder,
    page,
  }
  const addAll = async (prefixed: FastifyInstance) => {
    addServiceRoutes(prefixed, pipeline, probes)
    addStoreRoutes(prefixed, options, pipeline)
  }
  app.register(addAll, { prefix })
  return app
}

/** Fastify parses no query: `readQuery` does. */
const noQuery = Object.freeze({})

/** Proxies in a row. Following a long list from a client would take milliseconds. */
const proxyHopsMax = 16

function trustNear(
  proxies: readonly string[],
): (address: string, hop: number) => boolean {
  const isTrusted = proxyAddr.compile([...proxies])
  return (address, hop) => hop < proxyHopsMax && isTrusted(withoutPort(address), hop)
}

/** Removes the port that some proxies write behind an address in X-Forwarded-For, and the brackets of IPv6. */
function withoutPort(text: string): string {
  const [, ipv6, ipv4] = /^(?:\[(.*)\]|([\d.]+))(?::\d+)?$/.exec(text) ?? []
  return ipv6 ?? ipv4 ?? text
}

const withoutLastSlash = (text: string) => text.replace(/\/$/, '')

/** Removes the server's name, which a target may include (RFC 9112, 3.2.2). */
function originForm(target: string): string {
  if (target.startsWith('/')) {
    return target
  }
  return /^https?:\/\/[^/?#]*(\/.*)/i.exec(target)?.[1] ?? `/${target}`
}
