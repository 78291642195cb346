import { int64Max, int64Min } from '@plant-store/domain'
import type { FastifyInstance } from 'fastify'
import { type TObject, type TSchema, Type } from 'typebox'
import { commonFailures, type FailureRow } from '../errors/error-numbers.ts'
import { type Described, header, type MediaType, mapValues, type Operation, type Part } from './operation.ts'
import { about, example, FailureBody } from './schemas.ts'

interface DescribedRoute {
  readonly operationId: string
  readonly operation: Operation
  readonly part: Part
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Absent for routes that no description has, such as the host's own. */
    described?: DescribedRoute
  }
}

type Mounted = DescribedRoute & { readonly path: string }

/**
 * Describes the routes of this package that are added after this call.
 *
 * @param serverUrl the base of every path; without a host it is relative to the description's URL
 * @returns the interface description (OpenAPI 3.1.0) as JSON text
 */
export function describeRoutes(app: FastifyInstance, serverUrl: string): () => string {
  const mounted = noteMounted(app, 'routePath')
  let text: string | undefined
  return () => {
    const webhooks = Object.assign({}, ...partsOf(mounted).map(part => part.webhooks))
    text ??= JSON.stringify({ ...document(mounted, serverUrl), webhooks }, withReferences)
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
 * Describes the routes, with their prefixes, that `storeRoutes` adds after this call (OpenAPI 3.1.0). Serialize the
 * description with `JSON.stringify`: the bounds of an int64 are `JSON.rawJSON`, as no number holds them.
 */
export function describeInterface(app: FastifyInstance): () => InterfaceDescription {
  const mounted = noteMounted(app, 'url')
  return () => {
    const text = JSON.stringify(document(mounted, '/', { security }), withReferences)
    return parseJson(text, exactly) as InterfaceDescription
  }
}

function noteMounted(app: FastifyInstance, path: 'url' | 'routePath'): readonly Mounted[] {
  const mounted: Mounted[] = []
  app.addHook('onRoute', route => {
    const described = route.config?.described
    if (route.method !== 'HEAD' && described)
      mounted.push({ ...described, path: route[path].replaceAll(/:(\w+)/g, '{$1}') })
  })
  return mounted
}

const partsOf = (mounted: readonly Mounted[]) => [...new Set(mounted.map(({ part }) => part))]

const security = [{ bearerAuth: [] }]

/** @param common the defaults of every operation */
function document(mounted: readonly Mounted[], serverUrl: string, common: object = {}) {
  const parts = partsOf(mounted).sort((a, b) => (a.tag.name < b.tag.name ? -1 : 1))
  const entities = parts.filter(({ failures }) => failures).map(({ tag }) => tag.name)
  const schemas: Named[] = [FailureBody, ...parts.flatMap(part => Object.values(part.schemas))]
  return {
    openapi: '3.1.0',
    info: {
      title: 'Plant Store',
      version: '1.0.0',
      description: `Stores ${entities.join(' and ')} under exact 64-bit ids. A successful change is on disk. Each kind of failure has a number in \`error\`, listed at the responses. Other methods of these paths get 405, with \`Allow\` and the number 40501.\n\nClients generated for JavaScript round ids beyond 2^53 without an error. To keep them exact, write bodies with \`writeJsonRecord\` and parse answers with \`parseJsonRecord\`, both of \`@plant-store/json\`. With openapi-fetch: \`createClient<paths>({ baseUrl, bodySerializer: body => writeJsonRecord(body!) })\`, and \`parseJsonRecord(data)\` of answers to requests with \`parseAs: 'text'\`.`,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: serverUrl }],
    security,
    tags: parts.map(({ tag }) => tag),
    paths: describePaths(mounted, common),
    components: {
      schemas: Object.fromEntries(
        schemas
          .sort((a, b) => (a.title < b.title ? -1 : 1))
          .map(({ title, [example]: _, ...schema }) => [title, schema]),
      ),
      securitySchemes: { bearerAuth: { type: 'http', scheme: 'bearer' } },
      responses: Object.fromEntries(
        Object.entries(describeFailures(parts))
          .filter(([status]) => mounted.some(({ operation }) => operation.failures.includes(Number(status))))
          .map(([status, each]) => [`Failure${status}`, describe(each, true)]),
      ),
    },
  }
}

/** Members that are `undefined` are left out of the JSON. */
function describePaths(mounted: readonly Mounted[], common: object): Readonly<Record<string, object>> {
  const parts = partsOf(mounted)
  const paths: Record<string, object> = {}
  for (const { operationId, operation, part, path } of mounted) {
    const { method, scope, summary, description, params, querystring, headers, body } = operation
    const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string)
    // The prefix of a host may have parameters too.
    const inPath = names.map(name => [name, params?.properties[name] ?? Type.String()])
    const all = [
      ...parameters('path', Type.Object(Object.fromEntries(inPath))),
      ...parameters('query', querystring),
      ...parameters('header', headers),
    ]
    paths[path] = {
      ...paths[path],
      [method.toLowerCase()]: {
        ...common,
        operationId,
        tags: [part.tag.name],
        summary,
        description,
        ...(scope === null && { security: [] }),
        parameters: all.length > 0 ? all : undefined,
        requestBody: body && { ...describe(body), required: true },
        responses: {
          ...mapValues(failuresOf(operation, parts), (each, status) =>
            Object.hasOwn(operation.failureDescriptions ?? {}, status)
              ? describe(each)
              : { $ref: `#/components/responses/Failure${status}` },
          ),
          ...mapValues(operation.response, each => describe(each)),
        },
      },
    }
  }
  return paths
}

/** Returns the failures of an operation, where these parts are mounted. */
export function failuresOf({ failures, failureDescriptions = {} }: Operation, parts: readonly Part[]) {
  const all = describeFailures(parts)
  const own = mapValues(failureDescriptions, (text, status) => about(text, all[status] as Described))
  return { ...Object.fromEntries(failures.map(status => [status, all[status] as Described])), ...own }
}

const wwwAuthenticate = header('WWW-Authenticate', 'What is wrong with the credentials (RFC 6750, 3)')
const retryAfter = header('Retry-After', 'Seconds to wait before trying again')
/** The header fields of every failure with this status. */
const failureHeaders: Readonly<Record<string, Described['headers']>> = {
  401: wwwAuthenticate,
  403: wwwAuthenticate,
  429: retryAfter,
  503: retryAfter,
}

/** Returns the response of each status of a failure, with every number that it may have where these parts are mounted. */
function describeFailures(parts: readonly Part[]): Readonly<Record<string, Described>> {
  const rows: FailureRow[] = [commonFailures, ...parts.map(({ failures = {} }) => failures)].flatMap(
    Object.values,
  )
  rows.sort(([a], [b]) => a - b)
  return mapValues(
    Object.groupBy(rows, ([number]) => Math.floor(number / 100)),
    (ofStatus = [], status) => {
      const meanings = ofStatus.map(([number, meaning]) => `- ${number}: ${meaning}`)
      const values = ofStatus.map(([error, message]) => [
        error,
        { summary: `${error}`, value: { error, message } },
      ])
      const schema = { ...FailureBody, examples: Object.fromEntries(values) }
      const headers = failureHeaders[status]
      return { ...about(meanings.join('\n'), schema), ...(headers && { headers }) }
    },
  )
}

function parameters(place: 'path' | 'query' | 'header', schema = Type.Object({})): object[] {
  const { properties, required }: TObject = schema
  const names = required as readonly string[] | undefined
  return Object.entries(properties).map(([name, property]) => {
    const { description, ...schema } = property as TSchema & Named & { description?: string }
    return {
      name,
      in: place,
      required: names?.includes(name) || undefined,
      description,
      schema,
      example: place === 'path' ? schema[example] : undefined,
    }
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
  const { items, ...schema } = given.schema as Named & { readonly items?: Named }
  const ofItem = items?.[example]
  const found = schema[example] ?? (ofItem && [ofItem])
  return { ...(found !== undefined && { example: found }), ...given }
}

interface Named {
  readonly title: string
  readonly [example]?: unknown
}

type Revive = (name: string, value: unknown, context: { readonly source: string }) => unknown

/** ES2026, not yet in TypeScript's types. */
const { rawJSON, parse: parseJson } = JSON as JSON & {
  rawJSON(text: string): unknown
  parse(text: string, revive: Revive): unknown
}

/** Also writes bigints, and the bounds of an int64 without narrower ones. A JavaScript number would round them. */
export function withReferences(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return rawJSON(`${value}`)
  if (typeof value !== 'object' || value === null) return value
  const { title, format, minimum = int64Min, maximum = int64Max } = value as Record<string, unknown>
  if (example in value) return { $ref: `#/components/schemas/${title}` }
  return format === 'int64' ? { ...value, minimum, maximum } : value
}

const exactly: Revive = (_name, value, { source }) =>
  typeof value === 'number' && !Number.isSafeInteger(value) ? rawJSON(source) : value
