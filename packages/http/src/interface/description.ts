import { int64Max, int64Min } from '@plant-store/domain'
import type { FastifyInstance, RouteOptions } from 'fastify'
import { type TObject, type TSchema, Type } from 'typebox'
import {
  type Described,
  failureResponses,
  type MediaType,
  mapValues,
  type Operation,
  operations,
  webhooks,
} from './operations.ts'
import * as wire from './schemas.ts'

const { examples, ...schemas } = wire
const { Status: _, ...plantSchemas } = schemas

/** The schemas that the operations on plants use. */
export { plantSchemas }

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

/** The host's own routes are left out. */
const described: ReadonlySet<unknown> = new Set(Object.values(operations))

/**
 * Members that are `undefined` are left out of the JSON.
 *
 * @param common the defaults of every operation
 */
function collectPaths(
  app: FastifyInstance,
  pathOf: (route: RouteOptions & { readonly routePath: string }) => string,
  common: object = {},
): Readonly<Record<string, object>> {
  const paths: Record<string, object> = {}
  app.addHook('onRoute', route => {
    if (route.method === 'HEAD' || !described.has(route.schema)) return
    const { params, querystring, headers, body, response, ...rest } = route.schema as Operation
    const path = pathOf(route).replaceAll(/:(\w+)/g, '{$1}')
    const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string)
    // The prefix of a host may have parameters too.
    const inPath = names.map(name => [name, params?.properties[name] ?? Type.String()])
    paths[path] = {
      ...paths[path],
      parameters: names.length > 0 ? parameters('path', Type.Object(Object.fromEntries(inPath))) : undefined,
      [`${route.method}`.toLowerCase()]: {
        ...common,
        ...rest,
        parameters:
          (querystring && parameters('query', querystring)) ?? (headers && parameters('header', headers)),
        requestBody: body && { ...describe(body), required: true },
        responses: mapValues(response, (each, status) =>
          each === failureResponses[status]
            ? { $ref: `#/components/responses/Failure${status}` }
            : describe(each),
        ),
      },
    }
  })
  return paths
}

const security = [{ bearerAuth: [] }]

const document = (paths: object, serverUrl: string, named: Readonly<Record<string, { title: string }>>) => ({
  openapi: '3.1.0',
  info: {
    title: 'Plant Store',
    version: '1.0.0',
    description:
      "Stores plants under exact 64-bit ids. A successful change is on disk. Each kind of failure has a number in `error`, listed at the responses.\n\nClients generated for JavaScript round ids beyond 2^53 without an error. To keep them exact, write bodies with `writeJsonRecord` and parse answers with `parseJsonRecord`, both of `@plant-store/json`. With openapi-fetch: `createClient<paths>({ baseUrl, bodySerializer: body => writeJsonRecord(body!) })`, and `parseJsonRecord(data)` of answers to requests with `parseAs: 'text'`.",
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
      Object.entries(failureResponses).map(([status, each]) => [`Failure${status}`, describe(each, true)]),
    ),
  },
})

function parameters(place: 'path' | 'query' | 'header', { properties, required }: TObject): object[] {
  const names = required as readonly string[] | undefined
  return Object.entries(properties).map(([name, property]) => {
    const { description, ...schema } = property as TSchema & Titled & { description?: string }
    const example = place === 'path' ? exampleOf(schema) : undefined
    const isRequired = names?.includes(name) || undefined
    return { name, in: place, required: isRequired, description, schema, example }
  })
}

/** @param required whether the header fields are always present */
function describe(
  { description, headers, content, examples, ...schema }: Described,
  required?: boolean,
): Record<string, unknown> {
  const json = { 'application/json': { schema, ...(examples && { examples }) } }
  return {
    description,
    headers:
      headers && mapValues(headers, ({ description, ...schema }) => ({ description, required, schema })),
    content: schema.type === 'null' ? undefined : mapValues(content ?? json, withExample),
  }
}

/** Adds the example of a schema, or of a list of it, unless the media type has its own. */
function withExample(given: MediaType): MediaType {
  const { items, ...schema } = given.schema as Titled & { readonly items?: Titled }
  const ofItem = items && exampleOf(items)
  const example = exampleOf(schema) ?? (ofItem && [ofItem])
  return { ...(example !== undefined && { example }), ...given }
}

interface Titled {
  readonly title?: string
}

const exampleOf = ({ title = '' }: Titled) => examples[title]

const titles: ReadonlySet<unknown> = new Set(Object.values(schemas).map(({ title }) => title))

type Revive = (name: string, value: unknown, context: { readonly source: string }) => unknown

/** ES2026, not yet in TypeScript's types. */
const { rawJSON, parse: parseJson } = JSON as JSON & {
  rawJSON(text: string): unknown
  parse(text: string, revive: Revive): unknown
}

/** Also writes bigints, and the bounds of an int64 without narrower ones. A JavaScript number would round them. */
export function withReferences(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return rawJSON(`${value}`)
  if (typeof value !== 'object') return value
  const {
    title,
    format,
    minimum = rawJSON(`${int64Min}`),
    maximum = rawJSON(`${int64Max}`),
  } = value as Partial<Record<'title' | 'format' | 'minimum' | 'maximum', unknown>>
  if (titles.has(title)) return { $ref: `#/components/schemas/${title}` }
  if (format !== 'int64') return value
  return { ...value, minimum, maximum }
}

const exactly: Revive = (_name, value, { source }) =>
  typeof value === 'number' && !Number.isSafeInteger(value) ? rawJSON(source) : value
