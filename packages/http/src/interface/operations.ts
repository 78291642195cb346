import { pageLimitDefault, pageLimitMax } from '@plant-store/domain'
import type { FastifySchema } from 'fastify'
import { type TObject, Type } from 'typebox'
import { failures } from './error-numbers.ts'
import * as wire from './schemas.ts'

/** The input and output of a route, from which the interface description and the serializers are made. */
export interface Operation extends Declared {
  readonly operationId: string
  readonly tags: readonly string[]
}

interface Declared extends FastifySchema {
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
export interface Described {
  readonly description: string
  readonly headers?: Readonly<Record<string, { readonly description: string }>>
  readonly content?: Readonly<Record<string, MediaType>>
  readonly examples?: object
  readonly title?: string
  readonly type?: string
}

export interface MediaType {
  readonly schema: object
  readonly example?: unknown
  readonly examples?: object
}

export const linesMediaType = 'application/x-ndjson'
export const metricsMediaType = 'text/plain; version=0.0.4; charset=utf-8'

const about = <Schema extends object>(description: string, schema: Schema) => ({ ...schema, description })

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

/** The response of each status of a failure, with every number that it may have. */
export const failureResponses: Readonly<Record<string, Described>> = mapValues(
  Object.groupBy(Object.values(failures), ([number]) => Math.floor(number / 100)),
  (rows = [], status) => {
    const meanings = rows.map(([number, meaning]) => `- ${number}: ${meaning}`)
    const values = rows.map(([error, message]) => [error, { summary: `${error}`, value: { error, message } }])
    const schema = { ...wire.FailureBody, examples: Object.fromEntries(values) }
    const headers = failureHeaders[status]
    return { ...about(meanings.join('\n'), schema), ...(headers && { headers }) }
  },
)

const failing = (...statuses: readonly number[]) =>
  Object.fromEntries(statuses.map(status => [status, failureResponses[status] as Described]))

/** The failures of every operation. Undescribed paths and methods also answer 404 and 405. */
const aroundRequest = [400, 401, 403, 408, 417, 429, 431, 500, 503]
const aroundBody = [413, 415]

const plantPath = Type.Object({ id: about('The id of the plant', wire.PlantId) })

const conditionFields = Type.Object({
  'If-Match': Type.Optional(
    Type.String({ description: 'The plant must have one of these entity tags, or with `*` must exist' }),
  ),
  'If-None-Match': Type.Optional(
    Type.String({ description: 'The plant must have none of these entity tags, or with `*` must not exist' }),
  ),
})

const entityTag = { ETag: about('The version of the plant (RFC 9110, 8.8.3)', Type.String()) }

const pageLimit = { minimum: 1, maximum: pageLimitMax, default: pageLimitDefault }

const openOperation = (summary: string, schema: object): Declared => ({
  summary,
  security: [],
  response: { 200: about(summary, schema), ...failing(400, 408, 417, 431, 500, 503) },
})

const tagged = <Name extends string>(tag: 'plants' | 'service', declared: Record<Name, Declared>) =>
  mapValues(declared, (each, operationId): Operation => ({ operationId, tags: [tag], ...each }))

const plantOperations = tagged('plants', {
  createPlant: {
    summary: 'Add a plant',
    description: 'Creates a new plant in the store',
    body: about('Plant to add to the store', wire.NewPlant),
    response: {
      200: about('plant response', wire.Plant),
      ...failing(...aroundRequest, ...aroundBody),
      400: { ...failing(400)[400], description: 'unexpected error' },
    },
  },
  listPlants: {
    summary: 'List plants',
    description:
      'Returns a page of plants in ascending numeric order of id. A page of long texts may end before its limit.',
    querystring: Type.Object({
      limit: Type.Optional(Type.Integer({ description: 'The largest number of plants', ...pageLimit })),
      after: Type.Optional(about('Only plants with a greater id', wire.PlantId)),
      tag: Type.Optional(Type.String({ description: 'Only plants with exactly this tag' })),
    }),
    response: {
      200: {
        ...about('A page of plants', Type.Array(wire.StoredPlant, { maxItems: pageLimitMax })),
        headers: header(
          'Link',
          'The next page (RFC 8288, rel="next"). Absent on the last page. If it would be too long, the answer is 431.',
        ),
      },
      ...failing(...aroundRequest),
    },
  },
  readPlant: {
    summary: 'Read a plant',
    params: plantPath,
    headers: conditionFields,
    response: {
      200: { ...about('The plant', wire.StoredPlant), headers: entityTag },
      304: {
        ...about('The plant still has an entity tag of If-None-Match', Type.Null()),
        headers: entityTag,
      },
      ...failing(404, 412, ...aroundRequest),
    },
  },
  replacePlant: {
    summary: 'Create or replace a plant',
    description: 'Is idempotent. An `id` in the body must equal the id in the path.',
    params: plantPath,
    headers: conditionFields,
    body: about('The new plant', wire.Plant),
    response: {
      200: { ...about('The stored plant', wire.Plant), headers: entityTag },
      ...failing(412, ...aroundRequest, ...aroundBody),
    },
  },
  removePlant: {
    summary: 'Remove a plant',
    params: plantPath,
    headers: conditionFields,
    response: {
      204: about('The plant is removed', Type.Null()),
      ...failing(404, 412, ...aroundRequest, ...aroundBody),
    },
  },
  createPlants: {
    summary: 'Add many plants',
    description:
      'Creates the plant of each line, or lists why not. Counted plants are on disk. Sending the same lines again changes nothing, also after a request that failed as a whole.',
    querystring: Type.Object({
      announce: Type.Optional(
        Type.Boolean({ description: 'Whether the plants are announced to webhooks', default: true }),
      ),
    }),
    body: {
      description: 'One NewPlant a line, any number of lines. Empty lines are ignored',
      content: { [linesMediaType]: { schema: wire.PlantLines } },
    },
    response: {
      200: about('The outcome of the lines', wire.CreatedPlants),
      ...failing(...aroundRequest, ...aroundBody),
    },
  },
})

const serviceOperations = tagged('service', {
  health: openOperation('Liveness: the process responds', wire.Status),
  readiness: openOperation('Readiness: the service can serve', wire.Status),
  describe: openOperation('This description', { type: 'object' }),
  metrics: {
    summary: 'Metrics',
    description: 'Needs a token with the scope `metrics:read`.',
    response: {
      200: {
        description: 'Metrics in the Prometheus text format',
        content: { [metricsMediaType]: { schema: Type.String(), example: 'plant_store_ready 1\n' } },
      },
      ...failing(...aroundRequest),
    },
  },
})

/** By their ids. */
export const operations = { ...plantOperations, ...serviceOperations }

const field = (name: string, description: string) => ({
  name,
  in: 'header',
  required: true,
  description,
  schema: { type: 'string' },
})

/** The requests to webhooks, as OpenAPI describes them. */
export const webhooks = {
  '/plant/webhook': {
    post: {
      operationId: 'plantAdded',
      tags: ['plants'],
      summary: 'A plant was added',
      description: 'Information about a new plant added to the store',
      security: [],
      parameters: [
        field('webhook-id', 'The same at every attempt to deliver this plant (Standard Webhooks)'),
        field('webhook-timestamp', 'When the attempt was made, in seconds since 1970'),
        field('webhook-signature', 'v1, and the HMAC-SHA256 of id, timestamp and body; one for each secret'),
      ],
      requestBody: {
        description: 'Plant added to the store',
        required: true,
        content: { 'application/json': { schema: wire.NewPlant } },
      },
      responses: {
        200: { description: 'Return a 200 status to indicate that the data was received successfully' },
        410: { description: 'Removes the webhook. After any other status but 2xx, it is tried again' },
      },
    },
  },
}

export function mapValues<Name extends string, Value, Result>(
  record: Readonly<Partial<Record<Name, Value>>>,
  map: (value: Value, key: Name) => Result,
): Record<Name, Result> {
  const entries = Object.entries(record) as [Name, Value][]
  return Object.fromEntries(entries.map(([key, value]) => [key, map(value, key)])) as Record<Name, Result>
}
