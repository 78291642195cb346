import type { TObject } from 'typebox'
import { failures } from './errors/error-numbers.ts'
import { plantSchemas, plantWebhooks } from './plants/plant-schemas.ts'
import { type AddedRoute, isOpen, patternOf } from './request/paths.ts'
import { Status } from './service/service-routes.ts'
import { about, FailureBody, header } from './shared-schemas.ts'
import type { DescribedResponse, RouteSchema } from './typed-routes.ts'

const introduction = [
  'Stores plants under exact 64-bit ids.',
  'A successful change is on disk.',
  'Each kind of failure has a number in `error`, listed at the responses.',
  'Other methods of these paths get 405, with `Allow` and the number 40501.',
]
const aboutIds = [
  'Clients generated for JavaScript round ids beyond 2^53 without an error.',
  'To keep them exact, write bodies with `writeJsonRecord` and parse answers with `parseJsonRecord`, both of `@plant-store/json`.',
  'With openapi-fetch: `createClient<paths>({ baseUrl, bodySerializer: body => writeJsonRecord(body!) })`,',
  "and `parseJsonRecord(data)` of answers to requests with `parseAs: 'text'`.",
]
const tags = [
  { name: 'plants', description: 'The plants in the store' },
  {
    name: 'service',
    description: 'The service itself. Only the metrics need a token',
  },
]

/** The statuses of failures that every route has. */
const commonStatuses = [400, 408, 417, 431, 500, 503]

/** A route that the description has. */
interface DescribedRoute extends AddedRoute {
  readonly schema: RouteSchema
}

const isDescribed = (route: AddedRoute): route is DescribedRoute =>
  'operationId' in (route.schema ?? {}) && route.method !== 'HEAD'

/**
 * Returns the interface description (OpenAPI 3.1.0) as JSON text.
 *
 * @param serverUrl the base of every path; without a host it is relative to the
 *   description's URL
 */
export function describeInterface(
  routes: readonly AddedRoute[],
  serverUrl: string,
): string {
  const described = routes.filter(isDescribed)
  const paths: Record<string, object> = {}
  for (const route of described) {
    const path = patternOf(route).replaceAll(/:(\w+)/g, '{$1}')
    const method = `${route.method}`.toLowerCase()
    paths[path] = { ...paths[path], [method]: describeRoute(route) }
  }
  const statuses = new Set(described.flatMap(failureStatusesOf).sort())
  const responses = [...statuses].map(status => [
    `Failure${status}`,
    describeResponse(failureOf(status)),
  ])
  const description = {
    openapi: '3.1.0',
    info: {
      title: 'Plant Store',
      version: '1.0.0',
      description: `${introduction.join(' ')}\n\n${aboutIds.join(' ')}`,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: serverUrl }],
    security: [{ bearerAuth: [] }],
    tags,
    paths,
    components: {
      schemas: componentsOf([FailureBody, Status, ...plantSchemas]),
      securitySchemes: { bearerAuth: { type: 'http', scheme: 'bearer' } },
      responses: Object.fromEntries(responses),
    },
    webhooks: plantWebhooks,
  }
  return JSON.stringify(description, writeReference)
}

function failureStatusesOf(route: DescribedRoute): number[] {
  return [
    ...(route.schema.failureStatuses ?? []),
    ...commonStatuses,
    ...(isOpen(route) ? [] : [401, 403]),
    ...(route.method === 'GET' ? [] : [413, 415]),
  ]
}

/** Members that are `undefined` are left out of the JSON. */
function describeRoute(route: DescribedRoute): object {
  const { operationId, tags, summary, description, body, response } = route.schema
  const parameters = parametersOf(route.schema)
  return {
    operationId,
    tags,
    summary,
    description,
    security: isOpen(route) ? [] : undefined,
    parameters: parameters.length > 0 ? parameters : undefined,
    requestBody: body && { ...describeResponse(body as DescribedBody), required: true },
    responses: { ...describeFailures(route), ...mapValues(response, describeResponse) },
  }
}

function describeFailures(route: DescribedRoute): object {
  const { failureDescriptions = {} } = route.schema
  const entries = failureStatusesOf(route).map(status => {
    const own = failureDescriptions[status]
    const response =
      own === undefined
        ? { $ref: `#/components/responses/Failure${status}` }
        : describeResponse(about(own, failureOf(status)))
    return [status, response]
  })
  return Object.fromEntries(entries)
}

function parametersOf({ params, querystring, headers }: RouteSchema): object[] {
  const places = { path: params, query: querystring, header: headers }
  return Object.entries(places).flatMap(([place, object]) => {
    const { properties = {}, required = [] } = (object ?? {}) as Partial<TObject>
    return Object.entries<Described>(properties).map(
      ([name, { description, ...schema }]) => ({
        name,
        in: place,
        required: (required as readonly string[]).includes(name) || undefined,
        description,
        schema,
        example: place === 'path' ? schema.examples?.[0] : undefined,
      }),
    )
  })
}

/** The members of a schema that the description moves elsewhere. */
interface Described {
  readonly $id?: string
  readonly description?: string
  readonly type?: string
  readonly examples?: readonly unknown[]
}

type DescribedBody = DescribedResponse & Described & { readonly failureExamples?: object }

function describeResponse(response: DescribedBody): object {
  const { description, headers, content, failureExamples, ...schema } = response
  const media = content ?? { 'application/json': { schema } }
  const describeMedia = ({ schema }: { readonly schema: Described }) => ({
    example: schema.examples?.[0],
    schema,
    examples: failureExamples,
  })
  return {
    description,
    headers,
    content: schema.type === 'null' ? undefined : mapValues(media, describeMedia),
  }
}

const wwwAuthenticate = header(
  'WWW-Authenticate',
  'What is wrong with the credentials (RFC 6750, 3)',
  true,
)
/** The header fields of every failure with this status. */
const failureHeaders = new Map([
  [401, wwwAuthenticate],
  [403, wwwAuthenticate],
  [503, header('Retry-After', 'Seconds to wait before trying again', true)],
])

/** Returns the response of a failure, with every number that it may have. */
function failureOf(status: number): DescribedBody {
  const rows = Object.values(failures).filter(
    ([number]) => Math.floor(number / 100) === status,
  )
  const meanings = rows.map(([number, meaning]) => `- ${number}: ${meaning}`)
  const examples = rows.map(([error, message]) => [
    error,
    { summary: `${error}`, value: { error, message } },
  ])
  return {
    ...about(meanings.join('\n'), FailureBody, failureHeaders.get(status)),
    failureExamples: Object.fromEntries(examples),
  }
}

/** Returns the schemas by their names, in the order of these. */
function componentsOf(schemas: readonly object[]): object {
  const entries = schemas.map(({ $id, ...unnamed }: Described) => [$id, unnamed])
  // Each entry is compared as a text, which begins with its name.
  return Object.fromEntries(entries.sort())
}

/**
 * Refers to schemas with a name, and leaves out their examples, as a replacer of JSON.
 */
function writeReference(key: string, value: unknown): unknown {
  if (key === 'examples' && Array.isArray(value)) {
    return undefined
  }
  const { $id } = (value ?? {}) as Described
  if ($id === undefined) {
    return value
  }
  return { $ref: `#/components/schemas/${$id}` }
}

function mapValues<Value>(
  record: Readonly<Record<string, Value>>,
  map: (value: Value) => unknown,
): object {
  return Object.fromEntries(
    Object.entries(record).map(([key, value]) => [key, map(value)]),
  )
}
