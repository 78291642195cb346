import { plantIdMax, plantIdMin } from '@plant-store/domain'
import type { FastifyInstance } from 'fastify'
import type { TObject, TSchema } from 'typebox'
import { failures } from './failures.ts'
import { type Described, failureResponses, type Operation } from './operation.ts'
import * as schemas from './schemas.ts'

/**
 * Describes the routes that are added from now on.
 *
 * @param serverUrl what stands before every path; one without a host is relative to where the description is read
 * @returns the interface description (OpenAPI 3.1.0) as JSON text
 */
export function describeRoutes(app: FastifyInstance, serverUrl: string): () => string {
  const paths: Record<string, object> = {}
  app.addHook('onRoute', ({ routePath, method, schema = {} }) => {
    if (method === 'HEAD' || !('operationId' in schema)) return
    const { params, querystring, body, response, ...rest } = schema as Operation
    const template = routePath.replaceAll(/:(\w+)/g, '{$1}')
    const operation = {
      ...rest,
      ...(querystring && { parameters: parameters('query', querystring) }),
      ...(body && { requestBody: { ...described(body), required: true } }),
      responses: mapValues(response, (each, status) =>
        each === failureResponses[status]
          ? { $ref: `#/components/responses/Failure${status}` }
          : described(each),
      ),
    }
    paths[template] = {
      ...paths[template],
      ...(params && { parameters: parameters('path', params) }),
      [`${method}`.toLowerCase()]: operation,
    }
  })

  let text: string | undefined
  return () => {
    text ??= JSON.stringify(document(paths, serverUrl), withReferences)
    return text
  }
}

const document = (paths: object, serverUrl: string) => ({
  openapi: '3.1.0',
  info: {
    title: 'Plant Store',
    version: '1.0.0',
    description: `A store of plants. A change that is answered with success is on disk.\n\nThe numbers in \`error\`:\n\n${failureTable()}`,
    license: { name: 'MIT', identifier: 'MIT' },
  },
  servers: [{ url: serverUrl }],
  security: [{ bearerAuth: [] }],
  tags: [
    { name: 'plants', description: 'The plants in the store' },
    { name: 'service', description: 'The service itself; only its figures need a token' },
  ],
  paths,
  components: {
    schemas: Object.fromEntries(Object.values(schemas).map(({ title, ...schema }) => [title, schema])),
    securitySchemes: { bearerAuth: { type: 'http', scheme: 'bearer' } },
    responses: Object.fromEntries(
      Object.entries(failureResponses).map(([status, each]) => [`Failure${status}`, described(each, true)]),
    ),
  },
})

function failureTable(): string {
  const rows = Object.values(failures).map(({ number, meaning }) => `| ${number} | ${meaning} |`)
  return ['| error | meaning |', '|---|---|', ...rows].join('\n')
}

function parameters(place: 'path' | 'query', { properties, required }: TObject): object[] {
  const isRequired = (name: string) => (required as readonly string[] | undefined)?.includes(name)
  return Object.entries(properties).map(([name, property]) => {
    const { description, ...schema } = property as TSchema & { description?: string }
    return { name, in: place, ...(isRequired(name) && { required: true }), description, schema }
  })
}

/** @param required whether the header fields are always there */
function described(
  { description, headers, content, ...schema }: Described,
  required?: boolean,
): Record<string, unknown> {
  const isEmpty = schema.type === 'null'
  return {
    description,
    ...(headers && {
      headers: mapValues(headers, ({ description, ...schema }) => ({ description, required, schema })),
    }),
    ...(!isEmpty && { content: content ?? { 'application/json': { schema } } }),
  }
}

function mapValues<Value, Result>(
  record: Readonly<Record<string, Value>>,
  map: (value: Value, key: string) => Result,
): Record<string, Result> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value, key)]))
}

const titles = new Set(Object.values(schemas).map(({ title }) => title))

/** Of ES2026; TypeScript doesn't know it yet. */
const { rawJSON } = JSON as JSON & { rawJSON(text: string): unknown }

/** The bounds of an int64 are no JavaScript numbers, so their digits are written as they are. */
function withReferences(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  const { title, format } = value as { title?: string; format?: string }
  if (title !== undefined && titles.has(title)) return { $ref: `#/components/schemas/${title}` }
  if (format !== 'int64') return value
  return { ...value, minimum: rawJSON(`${plantIdMin}`), maximum: rawJSON(`${plantIdMax}`) }
}
