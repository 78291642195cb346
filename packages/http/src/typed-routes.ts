import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import type {
  ContextConfigDefault,
  FastifySchema,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
  RouteGenericInterface,
  RouteHandlerMethod,
} from 'fastify'
import type { Static, TSchema } from 'typebox'
import type { RouteScope } from './request/authenticate.ts'

/** The schema of a route in the interface description. */
export interface RouteSchema extends FastifySchema {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly summary: string
  readonly description?: string
  /** The answers that are no failures, by status. */
  readonly response: Readonly<Record<number, DescribedResponse>>
  /** The statuses of failures that not every such route has. */
  readonly failureStatuses?: readonly number[]
  /** Descriptions of failures that do not say what each of their numbers means. */
  readonly failureDescriptions?: Readonly<Record<number, string>>
}

/** One schema, or one for each media type, with a description. */
export interface DescribedResponse {
  readonly description: string
  readonly headers?: object | undefined
  readonly content?: Readonly<Record<string, { readonly schema: object }>>
}

/**
 * Fastify's own methods, but more strictly typed: a route must declare its scope, and its
 * handler must answer with a declared status and value.
 */
export type Routes = Readonly<Record<'get' | 'post' | 'put' | 'delete', AddRoute>>

type AddRoute = <const Schema extends RouteSchema>(
  path: string,
  options: {
    readonly config: { readonly scope: RouteScope }
    readonly schema: Schema
  },
  handler: (...exchange: Parameters<Handler<Schema>>) => Promise<Answer<Schema>>,
) => unknown

type Handler<Schema extends RouteSchema> = RouteHandlerMethod<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  RouteGenericInterface,
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
