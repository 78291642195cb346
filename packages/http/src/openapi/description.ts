import { int64Max, int64Min } from '@plant-store/domain'
import { type TObject, type TSchema, Type } from 'typebox'
import { describeFailures } from './failures.ts'
import type { Described, MediaType, Operation, Section } from './operation.ts'
import { about, example, FailureBody } from './schemas.ts'

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

/**
 * Returns the interface description (OpenAPI 3.1.0) as JSON text.
 *
 * @param serverUrl the base of every path; without a host it is relative to the description's URL
 */
export function describeInterface(
  sections: readonly Section[],
  serverUrl: string,
): string {
  const failures = describeFailures(sections)
  const operations = sections.flatMap(section =>
    Object.values<Operation>(section.operations),
  )
  const isUsed = (status: string) =>
    operations.some(({ failureStatuses }) => failureStatuses.includes(Number(status)))
  const schemas: Named[] = [
    FailureBody,
    ...sections.flatMap(section => Object.values(section.schemas)),
  ]
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
    tags: sections.map(({ tag }) => tag),
    paths: pathsOf(sections, failures),
    components: {
      schemas: Object.fromEntries(
        schemas
          .sort((a, b) => (a.title < b.title ? -1 : 1))
          .map(({ title, [example]: _, ...schema }) => [title, schema]),
      ),
      securitySchemes: { bearerAuth: { type: 'http', scheme: 'bearer' } },
      responses: Object.fromEntries(
        Object.entries(failures)
          .filter(([status]) => isUsed(status))
          .map(([status, failure]) => [`Failure${status}`, response(failure, true)]),
      ),
    },
    webhooks: Object.assign({}, ...sections.map(({ webhooks }) => webhooks)),
  }
  return JSON.stringify(description, withReferences)
}

type Failures = Readonly<Record<string, Described>>

function pathsOf(sections: readonly Section[], failures: Failures): object {
  const paths: Record<string, object> = {}
  for (const { tag, operations } of sections) {
    for (const [operationId, operation] of Object.entries<Operation>(operations)) {
      const path = operation.url.replaceAll(/:(\w+)/g, '{$1}')
      const described = {
        operationId,
        tags: [tag.name],
        ...describeOperation(operation, failures),
      }
      paths[path] = { ...paths[path], [operation.method.toLowerCase()]: described }
    }
  }
  return paths
}

/** Members that are `undefined` are left out of the JSON. */
function describeOperation(operation: Operation, failures: Failures): object {
  const { scope, summary, description, params, querystring, headers, body } = operation
  const all = [
    ...parameters('path', params),
    ...parameters('query', querystring),
    ...parameters('header', headers),
  ]
  return {
    summary,
    description,
    security: scope === null ? [] : undefined,
    parameters: all.length > 0 ? all : undefined,
    requestBody: body && { ...response(body), required: true },
    responses: {
      ...Object.fromEntries(
        operation.failureStatuses.map(status => [
          status,
          failureOf(operation, status, failures),
        ]),
      ),
      ...mapValues(operation.response, each => response(each)),
    },
  }
}

function failureOf(
  { failureDescriptions = {} }: Operation,
  status: number,
  failures: Failures,
): object {
  const own = failureDescriptions[status]
  if (own === undefined) {
    return { $ref: `#/components/responses/Failure${status}` }
  }
  return response(about(own, failures[status] as Described))
}

function parameters(
  place: 'path' | 'query' | 'header',
  schema = Type.Object({}),
): object[] {
  const { properties, required }: TObject = schema
  const names = required as readonly string[] | undefined
  return Object.entries(properties).map(([name, property]) => {
    const { description, ...schema } = property as TSchema &
      Named & { description?: string }
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
function response(
  { description, headers, content, examples, ...schema }: Described,
  required?: boolean,
): Record<string, unknown> {
  const json = { 'application/json': { schema, ...(examples && { examples }) } }
  return {
    description,
    headers:
      headers &&
      mapValues(headers, ({ description, ...schema }) => ({
        description,
        required,
        schema,
      })),
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

function mapValues<Value>(
  record: Readonly<Record<string, Value>>,
  map: (value: Value) => unknown,
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(record).map(([key, value]) => [key, map(value)]),
  )
}

/** ES2026, not yet in TypeScript's types. */
const { rawJSON } = JSON as JSON & { rawJSON(text: string): unknown }

/** Also writes bigints, and the bounds of an int64 without narrower ones. A JavaScript number would round them. */
export function withReferences(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') {
    return rawJSON(`${value}`)
  }
  if (typeof value !== 'object' || value === null) {
    return value
  }
  const {
    title,
    format,
    minimum = int64Min,
    maximum = int64Max,
  } = value as Record<string, unknown>
  if (example in value) {
    return { $ref: `#/components/schemas/${title}` }
  }
  return format === 'int64' ? { ...value, minimum, maximum } : value
}
