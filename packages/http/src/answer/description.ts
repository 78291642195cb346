import { plantIdMax, plantIdMin } from '@plant-store/domain'
import type { FastifyInstance, FastifySchema, RouteOptions } from 'fastify'
import type { TObject, TSchema } from 'typebox'
import { examples } from './examples.ts'
import { failures } from './failures.ts'
import * as schemas from './schemas.ts'
import { webhooks } from './webhooks.ts'

/** The input and output of a route, from which the interface description and the serializers are made. */
interface Operation extends FastifySchema {
  readonly operationId: string
  readonly tags: readonly ('plants' | 'service')[]
  readonly summary: string
  readonly description?: string
  /** Empty if no token is needed. */
  readonly security?: readonly []
  readonly params?: TObject
  readonly querystring?: TObject
  readonly headers?: TObject
  readonly body?: Described
  readonly response: Readonly<Record<string, Described>>
}

/** One schema, or one for each media type, with a description, as @fastify/swagger takes it. */
interface Described {
  readonly description: string
  readonly headers?: Readonly<Record<string, { readonly description: string }>>
  readonly content?: Readonly<Record<string, MediaType>>
  readonly examples?: MediaType['examples']
  readonly title?: string
  readonly type?: string
}

interface MediaType {
  readonly schema: object
  readonly example?: unknown
  readonly examples?: Readonly<Record<string, { readonly summary: string; readonly value: unknown }>>
}

/** Returns the operation as Fastify's type, which knows only validation and serialization. */
export function operation(declared: Operation): FastifySchema {
  operations.add(declared)
  return declared
}

/** Leaves the host's own routes out of the description. */
const operations = new WeakSet<object>()

export const about = <Schema extends object>(description: string, schema: Schema) => ({
  ...schema,
  description,
})

const header = (name: string, description: string) => ({ [name]: { type: 'string', description } })
const wwwAuthenticate = header('WWW-Authenticate', 'What is wrong with the credentials (RFC 6750, 3)')
const retryAfter = header('Retry-After', 'Seconds to wait before trying again')
/** The header fields of every failure with this status. */
const failureHeaders: Readonly<Record<string, Described['headers']>> = {
  401: wwwAuthenticate,
  403: wwwAuthenticate,
  405: header('Allow', 'The methods at this path'),
  429: retryAfter,
  503: retryAfter,
}

const failureResponses: Readonly<Record<string, Described>> = mapValues(
  Object.groupBy(Object.values(failures), ([number]) => Math.floor(number / 100)),
  (rows = [], status) => {
    const meanings = rows.map(([number, meaning]) => `- ${number}: ${meaning}`)
    const headers = failureHeaders[status]
    const values = rows.map(([error, message]) => [error, { summary: `${error}`, value: { error, message } }])
    const schema = { ...schemas.FailureBody, examples: Object.fromEntries(values) }
    return { ...about(meanings.join('\n'), schema), ...(headers && { headers }) }
  },
)

export const failing = (...statuses: readonly number[]) =>
  Object.fromEntries(statuses.map(status => [status, failureResponses[status] as Described]))

/** The failures of every operation. Undescribed paths and methods also answer 404 and 405. */
export const aroundRequest = [400, 401, 403, 408, 417, 429, 431, 500, 503]
export const aroundBody = [413, 415]

/**
 * Describes the routes of this package that are added after this call.
 *
 * @param serverUrl the base of every path; without a host it is relative to the description's URL
 * @returns the interface description (OpenAPI 3.1.0) as JSON text
 */
export function describeRoutes(app: FastifyInstance, serverUrl: string): () => string {
  const paths = collectPaths(app, ({ routePath }) => routePath)
  let text: string | undefined
  return () => {
    text ??= JSON.stringify({ ...document(paths, serverUrl, schemas), webhooks }, withReferences)
    return text
  }
}

/** A description for a host to merge with its own, or to serve as it is. */
export interface InterfaceDescription {
  readonly openapi: string
  readonly info: Readonly<Record<'title' | 'version' | 'description', string>>
  readonly paths: Readonly<Record<string, object>>
  readonly components: Readonly<
    Record<'schemas' | 'securitySchemes' | 'responses', Readonly<Record<string, object>>>
  >
}

/**
 * Describes the routes, with their prefixes, that `plantRoutes` adds after this call (OpenAPI 3.1.0). Serialize the
 * description with `JSON.stringify`: the bounds of an int64 are `JSON.rawJSON`, as no number holds them.
 */
export function describeInterface(app: FastifyInstance): () => InterfaceDescription {
  const paths = collectPaths(app, ({ url }) => url, { security })
  return () => {
    const text = JSON.stringify(document(paths, '/', plantSchemas), withReferences)
    return parseJson(text, exactly) as InterfaceDescription
  }
}

/** @param common the defaults of every operation */
function collectPaths(
  app: FastifyInstance,
  pathOf: (route: RouteOptions & { readonly routePath: string }) => string,
  common: object = {},
): Readonly<Record<string, object>> {
  const paths: Record<string, object> = {}
  app.addHook('onRoute', route => {
    const { method, schema = {} } = route
    if (method === 'HEAD' || !operations.has(schema)) return
    const { params, querystring, headers, body, response, ...rest } = schema as Operation
    const template = pathOf(route).replaceAll(/:(\w+)/g, '{$1}')
    const around = [...template.matchAll(/\{(\w+)\}/g)]
      .map(([, name]) => name as string)
      .filter(name => params?.properties[name] === undefined)
    const operation = {
      ...common,
      ...rest,
      ...(querystring && { parameters: parameters('query', querystring) }),
      ...(headers && { parameters: parameters('header', headers) }),
      ...(body && { requestBody: { ...described(body), required: true } }),
      responses: mapValues(response, (each, status) =>
        each === failureResponses[status]
          ? { $ref: `#/components/responses/Failure${status}` }
          : described(each),
      ),
    }
    paths[template] = {
      ...paths[template],
      ...((params || around.length > 0) && {
        parameters: [
          ...around.map(name => ({ name, in: 'path', required: true, schema: { type: 'string' } })),
          ...(params ? parameters('path', params) : []),
        ],
      }),
      [`${method}`.toLowerCase()]: operation,
    }
  })
  return paths
}

const security = [{ bearerAuth: [] }]
/** The schemas that the operations on plants use. */
const { Status: _, ...plantSchemas } = schemas

export { plantSchemas }

const document = (paths: object, serverUrl: string, named: Readonly<Record<string, { title: string }>>) => ({
  openapi: '3.1.0',
  info: {
    title: 'Plant Store',
    version: '1.0.0',
    description:
      'Stores plants under exact 64-bit ids. A successful change is on disk. Each kind of failure has a number in `error`, listed at the responses.',
    license: { name: 'MIT', identifier: 'MIT' },
  },
  servers: [{ url: serverUrl }],
  security,
  tags: [
    { name: 'plants', description: 'The plants in the store' },
    { name: 'service', description: 'The service itself. Only the metrics need a token' },
  ],
  paths,
  components: {
    schemas: Object.fromEntries(Object.values(named).map(({ title, ...schema }) => [title, schema])),
    securitySchemes: { bearerAuth: { type: 'http', scheme: 'bearer' } },
    responses: Object.fromEntries(
      Object.entries(failureResponses).map(([status, each]) => [`Failure${status}`, described(each, true)]),
    ),
  },
})

function parameters(place: 'path' | 'query' | 'header', { properties, required }: TObject): object[] {
  const isRequired = (name: string) => (required as readonly string[] | undefined)?.includes(name)
  return Object.entries(properties).map(([name, property]) => {
    const { description, ...schema } = property as TSchema & { description?: string; title?: string }
    const example = place === 'path' && { example: examples[schema.title ?? ''] }
    return { name, in: place, ...(isRequired(name) && { required: true }), description, schema, ...example }
  })
}

/** @param required whether the header fields are always present */
function described(
  { description, headers, content, examples, ...schema }: Described,
  required?: boolean,
): Record<string, unknown> {
  const isEmpty = schema.type === 'null'
  const json = { 'application/json': { schema, ...(examples && { examples }) } }
  return {
    description,
    ...(headers && {
      headers: mapValues(headers, ({ description, ...schema }) => ({ description, required, schema })),
    }),
    ...(!isEmpty && { content: mapValues(content ?? json, withExample) }),
  }
}

interface Titled {
  readonly title?: string
}

/** Adds the example of a schema, or of a list of it, unless the media type has its own. */
function withExample(given: MediaType): MediaType {
  const { title, items } = given.schema as Titled & { readonly items?: Titled }
  const ofItem = examples[items?.title ?? '']
  const example = examples[title ?? ''] ?? (ofItem && [ofItem])
  return { ...(example !== undefined && { example }), ...given }
}

function mapValues<Value, Result>(
  record: Readonly<Record<string, Value>>,
  map: (value: Value, key: string) => Result,
): Record<string, Result> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value, key)]))
}

const titles: ReadonlySet<unknown> = new Set(Object.values(schemas).map(({ title }) => title))

type Revive = (name: string, value: unknown, context: { readonly source: string }) => unknown

/** ES2026, not yet in TypeScript's types. */
const { rawJSON, parse: parseJson } = JSON as JSON & {
  rawJSON(text: string): unknown
  parse(text: string, revive: Revive): unknown
}

/**
 * Also writes bigints, and the bounds of an int64 without narrower ones. A JavaScript number would round them.
 */
function withReferences(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return rawJSON(`${value}`)
  if (typeof value !== 'object') return value
  const {
    title,
    format,
    minimum = rawJSON(`${plantIdMin}`),
    maximum = rawJSON(`${plantIdMax}`),
  } = value as Partial<Record<'title' | 'format' | 'minimum' | 'maximum', unknown>>
  if (titles.has(title)) return { $ref: `#/components/schemas/${title}` }
  if (format !== 'int64') return value
  return { ...value, minimum, maximum }
}

const exactly: Revive = (_name, value, { source }) =>
  typeof value === 'number' && !Number.isSafeInteger(value) ? rawJSON(source) : value
