import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import type {
  ContextConfigDefault,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  FastifySchema,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
  RouteGenericInterface,
  RouteOptions,
} from 'fastify'
import type { Static, TSchema } from 'typebox'
import { RequestError } from './errors/failures.ts'
import type { RouteScope } from './request/authenticate.ts'
import { slashAdvice } from './request/paths.ts'

declare module 'fastify' {
  /** The members of a schema that only the interface description uses. */
  interface FastifySchema {
    readonly operationId?: string
    readonly tags?: readonly string[]
    readonly summary?: string
    readonly description?: string
    /** The statuses of failures that not every such route has. */
    readonly failureStatuses?: readonly number[]
    /** Descriptions of failures that do not say what each of their numbers means. */
    readonly failureDescriptions?: Readonly<Record<number, string>>
  }
}

/** The schema of a route in the interface description. */
export interface RouteSchema extends FastifySchema {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly summary: string
  /** The answers that are no failures, by status. */
  readonly response: Readonly<Record<number, DescribedResponse>>
}

/** One schema, or one for each media type, with a description. */
export interface DescribedResponse {
  readonly description: string
  readonly headers?: Readonly<Record<string, { readonly description: string }>>
  readonly content?: Readonly<Record<string, { readonly schema: object }>>
}

/**
 * Fastify's own methods, but more strictly typed: a route must declare its scope, and its
 * handler must answer with a declared status and value.
 */
export interface Routes {
  readonly get: AddRoute
  readonly post: AddRoute
  readonly put: AddRoute
  readonly delete: AddRoute
}

type AddRoute = <const Schema extends RouteSchema>(
  path: string,
  options: {
    readonly config: { readonly scope: RouteScope }
    readonly schema: Schema
  },
  handler: (
    request: RouteRequest<Schema>,
    reply: RouteReply<Schema>,
  ) => Promise<Answer<Schema>>,
) => unknown

type RouteRequest<Schema extends FastifySchema> = FastifyRequest<
  RouteGenericInterface,
  RawServerDefault,
  RawRequestDefaultExpression,
  Schema,
  TypeBoxTypeProvider
>

type RouteReply<Schema extends FastifySchema> = FastifyReply<
  RouteGenericInterface,
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  ContextConfigDefault,
  Schema,
  TypeBoxTypeProvider
>

/**
 * The value that a handler returns: one of the schema, or a text of another media type.
 */
type Answer<Schema extends RouteSchema> = {
  [Status in keyof Schema['response']]: Schema['response'][Status] extends TSchema
    ? Readonly<Static<Schema['response'][Status]>>
    : string
}[keyof Schema['response']]

/**
 * Collects the routes that are added from now on, without those that Fastify adds for
 * HEAD.
 */
export function collectRoutes(app: FastifyInstance): readonly RouteOptions[] {
  const routes: RouteOptions[] = []
  app.addHook('onRoute', route => {
    if (route.method !== 'HEAD') {
      routes.push({ ...route })
    }
  })
  return routes
}

/** Adds a route to each path that answers 405 to the methods that the path lacks. */
export function refuseOtherMethods(
  app: FastifyInstance,
  routes: readonly RouteOptions[],
): void {
  const byPath = Map.groupBy(routes, pathOf)
  for (const [path, routesOfPath] of byPath) {
    const methods = routesOfPath.flatMap(({ method }) => method)
    const isOpen = routesOfPath.every(({ config }) => config?.scope === null)
    addRefusal(app, path, methods, isOpen ? null : 'any')
  }
}

/** Returns the path of a route without the prefix of the server. */
export function pathOf(route: RouteOptions): string {
  const { routePath } = route as RouteOptions & { readonly routePath: string }
  return routePath === '' ? '/' : routePath
}

/** The order of methods in Allow. GET brings HEAD. */
const methodOrder = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE']

function addRefusal(
  app: FastifyInstance,
  url: string,
  methods: readonly string[],
  scope: RouteScope,
): void {
  const allowed = methodOrder.filter(method =>
    methods.includes(method === 'HEAD' ? 'GET' : method),
  )
  const allow = allowed.join(', ')
  app.route({
    method: app.supportedMethods.filter(method => !allowed.includes(method)),
    url,
    config: { scope },
    // A handler would run after the body is read.
    onRequest(request, _reply, done) {
      const message = `the methods of this path are ${allow}${slashAdvice(request.url)}`
      done(new RequestError('method-not-allowed', message, { allow }))
    },
    handler() {
      throw new Error('the hook of this route refuses every request')
    },
  })
}
