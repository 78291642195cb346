import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Gate } from '@plant-store/access'
import type { PlantStore } from '@plant-store/domain'
import { type FastifyBaseLogger, type FastifyInstance, fastify, LogController } from 'fastify'
import { answerFailure } from './answers.ts'
import { createAuthentication } from './authentication.ts'
import { RequestError, type RequestErrorCode, toFailure } from './errors.ts'
import { knowAllMethods } from './methods.ts'
import { addOpenPages } from './open-pages.ts'
import { describeInterface } from './openapi.ts'
import { plantRoutes } from './plants.ts'
import { checkHeaders } from './request.ts'
import { writeError } from './schemas.ts'

export interface ServerOptions {
  readonly store: PlantStore
  readonly gate: Gate
  /** Rejects when the store can't serve at the moment. */
  readonly check: () => Promise<void>
  readonly logger: FastifyBaseLogger
  /** What clients see of this server: it is named in the description, and its path is put before every route. */
  readonly baseUrl?: URL
  readonly limits: ServerLimits
}

export interface ServerLimits {
  readonly bodyBytesMax: number
  readonly headerBytesMax: number
  /** For a whole request to arrive, from its first byte. */
  readonly requestTimeoutMs: number
  /** For its header section to arrive. */
  readonly headersTimeoutMs: number
  /** For the next request on a connection to begin. */
  readonly keepAliveTimeoutMs: number
}

/** The whole service over HTTP, not yet listening. */
export function createServer({
  store,
  gate,
  check,
  logger,
  baseUrl,
  limits,
}: ServerOptions): FastifyInstance {
  const prefix = withoutLastSlash(baseUrl?.pathname ?? '')
  const serverUrl = baseUrl === undefined ? '/' : withoutLastSlash(baseUrl.href)
  const app = fastify({
    loggerInstance: logger,
    // One line a request, below; a child logger for each request would cost more than the line.
    logController: new LogController({ disableRequestLogging: true }),
    childLoggerFactory: () => logger,
    bodyLimit: limits.bodyBytesMax,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    http: {
      maxHeaderSize: limits.headerBytesMax,
      headersTimeout: limits.headersTimeoutMs,
      // A missing Host is refused in our own words.
      requireHostHeader: false,
    },
    // What was sent before the server began to stop is still answered.
    return503OnClosing: false,
    routerOptions: { maxParamLength: limits.headerBytesMax, querystringParser: () => ({}) },
    rewriteUrl: ({ url = '/' }) => originForm(url),
    frameworkErrors: answerFailure,
    clientErrorHandler: refuseConnection,
  })
  app.server.on('checkContinue', app.routing)
  app.server.on('checkExpectation', (request, response) => {
    const error = new RequestError(
      'expectation-failed',
      `the expectation ${request.headers.expect} can not be met`,
    )
    const { status, body } = toFailure(error)
    response
      .writeHead(status, { 'content-type': 'application/json', connection: 'close' })
      .end(writeError(body))
  })
  app.server.on('connect', (_request, socket: Socket) => {
    refuse(socket, new RequestError('method-not-allowed', 'this server is no proxy', { allow: '' }))
  })

  knowAllMethods(app)
  app.decorateRequest('tokenName', '')
  app.setErrorHandler(answerFailure)
  const authenticate = createAuthentication(gate)
  app.addHook('onRequest', (request, reply, done) => {
    checkHeaders(request.raw)
    if (!request.is404) return done()
    const refuse = () => done(new RequestError('no-such-path', 'there is nothing at this path'))
    authenticate(request, reply, error => (error === undefined ? refuse() : done(error)))
  })
  app.addHook('onResponse', (request, { statusCode, elapsedTime }, done) => {
    const { id, method, routeOptions, tokenName } = request
    logger.info(
      {
        reqId: id,
        method,
        route: routeOptions.url,
        status: statusCode,
        token: tokenName,
        ms: Math.round(elapsedTime * 1000) / 1000,
      },
      'answered',
    )
    done()
  })

  app.register(
    async routes => {
      addOpenPages(routes, { check, description: describeInterface(serverUrl) })
      routes.register(plantRoutes, { store, gate })
    },
    { prefix },
  )
  return app
}

const withoutLastSlash = (text: string) => text.replace(/\/$/, '')

/** A target may name the server too (RFC 9112, 3.2.2); what is routed is the rest. */
function originForm(target: string): string {
  if (target.startsWith('/')) return target
  return /^https?:\/\/[^/?#]*(\/.*)$/i.exec(target)?.[1] ?? `/${target}`
}

/** Answers what Node's parser could not make a request of. */
function refuseConnection(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const [code, message] = parserFailures[error.code ?? ''] ?? [
    'bad-request',
    'the request is not well-formed HTTP',
  ]
  refuse(socket, new RequestError(code, message))
}

const parserFailures: Record<string, [RequestErrorCode, string]> = {
  HPE_HEADER_OVERFLOW: ['headers-too-large', 'the header fields are too large'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ['body-too-large', 'the chunk extensions of the body are too large'],
  ERR_HTTP_REQUEST_TIMEOUT: ['request-timeout', 'the request did not arrive in time'],
}

function refuse(socket: Socket, error: RequestError): void {
  const { status, headers, body } = toFailure(error)
  const content = writeError(body)
  const fields = {
    ...headers,
    date: new Date().toUTCString(),
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(content),
    connection: 'close',
  }
  const head = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head.join('')}\r\n${content}`)
}
