import type { Gate, Scope } from '@plant-store/access'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Static, TObject, TSchema } from 'typebox'
import { type Answered, answer } from './answer/answer.ts'
import { type Budget, countedBytesMin, createBudget } from './budget.ts'
import { RequestError } from './errors/failures.ts'
import type { ServerLimits } from './limits.ts'
import type { Operation, Operations, Section } from './openapi/operation.ts'
import { createPageTurns } from './page-turns.ts'
import { type Authenticate, createAuthentication } from './request/authenticate.ts'
import { createBodyReader } from './request/body.ts'
import { checkRequests } from './request/checks.ts'
import { endEarlyAnswers } from './request/early-answers.ts'
import { readQuery } from './request/query.ts'

/** What handlers may use of what every request goes through. */
export interface Pipeline {
  readonly limits: ServerLimits
  readonly authenticate: Authenticate
  /** Bounds the memory for answers. */
  readonly answerBudget: Budget
  /** Aborted when bodies that still arrive and pages that wait must end, as the server stops. */
  readonly ending: AbortSignal
  /** Reads a page at its turn. Its texts may have as many bytes of UTF-8 as there is memory for. */
  readPage<Page>(
    reply: FastifyReply,
    read: (textBytesMax: number) => Promise<Page>,
  ): Promise<Page>
}

export interface PipelineOptions {
  readonly gate: Gate
  readonly limits: ServerLimits
  readonly ending: AbortSignal
}

/** Makes the server check, authenticate and parse every request, whatever its route. */
export function createPipeline(
  app: FastifyInstance,
  { gate, limits, ending }: PipelineOptions,
): Pipeline {
  const authenticate = createAuthentication(gate)
  // Apart, so that slow uploads do not use up the memory for answers.
  const bodyBudget = createBudget(limits.heldBytesMax / 2)
  const answerBudget = createBudget(limits.heldBytesMax / 2)
  endEarlyAnswers(app)
  checkRequests(app, authenticate, bodyBudget, limits.bodyBytesMax)
  // Bodies reach the routes as bytes.
  app.removeAllContentTypeParsers()
  const readBody = createBodyReader(limits.bodyBytesMax)
  app.addContentTypeParser('application/json', readBody)
  // The checks leave an empty body in chunks without a media type.
  app.addContentTypeParser('*', readBody)
  const atItsTurn = createPageTurns()
  const readPage: Pipeline['readPage'] = ({ raw }, read) =>
    atItsTurn(async () => {
      if (ending.aborted) {
        throw new RequestError('draining', 'the server is shutting down')
      }
      // A page becomes shorter rather than refused.
      const bytes = Math.min(
        limits.pageTextBytesMax,
        Math.max(countedBytesMin, answerBudget.free() / 2),
      )
      if (bytes > countedBytesMin) {
        answerBudget.setHeld(raw, bytes)
      }
      return read(bytes)
    })
  return { limits, authenticate, answerBudget, ending, readPage }
}

type Names<Schema> = Schema extends TObject ? keyof Static<Schema> : never
type Value<Schema> = Schema extends TSchema ? Readonly<Static<Schema>> : never

/** A request and its answer, with the names and types of its operation. */
export interface Exchange<Asked extends Operation> {
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly params: { readonly [Name in Names<Asked['params']>]: string }
  /** Percent-decoded. */
  readonly query: { readonly [Name in Names<Asked['querystring']>]?: string }
  /** Sends a value of the schema that the operation has for this status. */
  answer<Status extends keyof Asked['response']>(
    status: Status,
    value: Value<Asked['response'][Status]>,
  ): Answered
}

/** A handler for each operation, declared as a method: TypeScript then lets the handlers of any section pass as `Handlers`. */
export type Handlers<All extends Operations = Operations> = {
  readonly [Id in keyof All]: {
    handle(exchange: Exchange<All[Id]>): Promise<Answered>
  }['handle']
}

/** The header fields that keep data from being stored, or run as a page. */
const dataFields = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }

/** Adds the routes of a section, and 405 for the other methods of their paths. */
export function addRoutes(
  app: FastifyInstance,
  { operations }: Section,
  handlers: Handlers,
  pipeline: Pipeline,
): void {
  for (const [operationId, operation] of Object.entries(operations)) {
    const { method, url, scope, response } = operation
    const handle = handlers[operationId] as Handlers[string]
    const names = Object.keys(operation.querystring?.properties ?? {})
    const budget = method === 'GET' ? pipeline.answerBudget : undefined
    const [streamedMediaType] = Object.keys(operation.body?.content ?? {})
    if (streamedMediaType !== undefined) {
      app.addContentTypeParser(streamedMediaType, (_request, body, parsed) =>
        parsed(null, body),
      )
    }
    app.route({
      method,
      url,
      schema: { response },
      config: { scope, ...(streamedMediaType !== undefined && { streamedMediaType }) },
      // Without a promise for Fastify, which would send what it resolves to.
      handler(request, reply) {
        reply.headers(dataFields)
        handle({
          request,
          reply,
          params: request.params as Exchange<Operation>['params'],
          query: operation.ignoresQuery
            ? {}
            : readQuery(request.raw.url as string, names),
          answer: (status, value) => answer(reply, status, value, budget),
        }).catch(error => app.errorHandler(error, request, reply))
      },
    })
  }
  for (const [url, ofPath] of Map.groupBy(Object.values(operations), ({ url }) => url)) {
    const methods = ofPath.map(({ method }) => method)
    failOtherMethods(app, url, methods, (ofPath[0] as Operation).scope)
  }
}

/**
 * Answers 405 to the other methods of a path.
 *
 * @param methods of which GET brings HEAD
 * @param scope of one of them: 405 is the answer whatever the scope
 */
export function failOtherMethods(
  app: FastifyInstance,
  url: string,
  methods: readonly string[],
  scope: Scope | null,
): void {
  const allowed = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'].filter(method =>
    methods.includes(method === 'HEAD' ? 'GET' : method),
  )
  app.route({
    method: app.supportedMethods.filter(method => !allowed.includes(method)),
    url,
    config: { scope, allowedMethods: allowed.join(', ') },
    handler: () => {
      throw new Error('`checkMethod` must answer')
    },
  })
}
