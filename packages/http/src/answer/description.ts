import { pageLimitDefault, pageLimitMax, plantIdMax, plantIdMin } from '@plant-store/domain'
import { metricsMediaType } from '../routes/metrics-route.ts'
import { failures } from './failures.ts'
import { schemas } from './schemas.ts'

/**
 * The interface description (OpenAPI 3.1.0) as JSON text.
 *
 * @param serverUrl what stands before every path; one without a host is relative to where the description is read
 */
export function describeInterface(serverUrl: string): string {
  const document = {
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
    paths: {
      '/plants': {
        post: {
          operationId: 'createPlant',
          tags: ['plants'],
          summary: 'Add a plant',
          description: 'Creates a new plant in the store',
          requestBody: { ...json(ref('NewPlant')), description: 'Plant to add to the store', required: true },
          responses: {
            200: { description: 'plant response', ...json(ref('Plant')) },
            400: { description: 'unexpected error', ...json(ref('Error')) },
            ...refusals(...aroundRequest, ...aroundBody),
          },
        },
        get: {
          operationId: 'listPlants',
          tags: ['plants'],
          summary: 'List plants',
          description:
            'The plants in ascending numeric order of their ids, a page at a time; one of long texts ends before its limit.',
          parameters: [
            {
              name: 'limit',
              in: 'query',
              description: 'At most so many plants',
              schema: { type: 'integer', minimum: 1, maximum: pageLimitMax, default: pageLimitDefault },
            },
            { name: 'after', in: 'query', description: 'Only ids above this one', schema: ref('PlantId') },
            {
              name: 'tag',
              in: 'query',
              description: 'Only plants with exactly this tag',
              schema: { type: 'string' },
            },
          ],
          responses: {
            200: {
              description: 'A page of plants',
              headers: {
                Link: {
                  description:
                    'The next page (RFC 8288, rel="next"); absent on the last one. 431 where no request could carry it.',
                  schema: { type: 'string' },
                },
              },
              ...json({ type: 'array', maxItems: pageLimitMax, items: ref('StoredPlant') }),
            },
            ...refusals(400, ...aroundRequest),
          },
        },
      },
      '/plants/{id}': {
        parameters: [
          {
            name: 'id',
            in: 'path',
            required: true,
            description: 'The id of the plant',
            schema: ref('PlantId'),
          },
        ],
        get: {
          operationId: 'readPlant',
          tags: ['plants'],
          summary: 'Read a plant',
          responses: {
            200: { description: 'The plant', ...json(ref('StoredPlant')) },
            ...refusals(400, 404, ...aroundRequest),
          },
        },
        put: {
          operationId: 'replacePlant',
          tags: ['plants'],
          summary: 'Create or replace a plant',
          description:
            'Doing it twice is doing it once. An `id` in the body, where there is one, must be that of the path.',
          requestBody: { ...json(ref('Plant')), description: 'The plant as it is to be', required: true },
          responses: {
            200: { description: 'The plant as it is now', ...json(ref('Plant')) },
            ...refusals(400, ...aroundRequest, ...aroundBody),
          },
        },
        delete: {
          operationId: 'removePlant',
          tags: ['plants'],
          summary: 'Remove a plant',
          responses: {
            204: { description: 'The plant is removed' },
            ...refusals(400, 404, ...aroundRequest, ...aroundBody),
          },
        },
      },
      '/healthz': {
        get: openPage('health', 'Whether the process answers', ref('Status')),
      },
      '/readyz': {
        get: openPage('readiness', 'Whether the service can serve', ref('Status'), 503),
      },
      '/metrics': {
        get: {
          operationId: 'metrics',
          tags: ['service'],
          summary: 'The figures of the service',
          description: 'For a token with the scope `metrics:read`, in the text format of Prometheus.',
          responses: {
            200: {
              description: 'The figures',
              content: { [metricsMediaType]: { schema: { type: 'string' } } },
            },
            ...refusals(400, ...aroundRequest),
          },
        },
      },
      '/openapi.json': {
        get: openPage('describe', 'This description', { type: 'object' }),
      },
    },
    components: {
      schemas,
      securitySchemes: { bearerAuth: { type: 'http', scheme: 'bearer' } },
      responses: Object.fromEntries(
        statuses.map(status => [`Failure${status}`, { ...failureResponse(status), ...json(ref('Error')) }]),
      ),
    },
  }
  return JSON.stringify(document, withExactBounds)
}

const statuses = [...new Set(Object.values(failures).map(({ number }) => Math.floor(number / 100)))]
type Status = (typeof statuses)[number]

/** Any request to an operation can meet these; 404 and 405 of paths and methods that are not described stand apart. */
const aroundRequest: Status[] = [401, 403, 408, 417, 429, 431, 500, 503]
const aroundBody: Status[] = [413, 415]

const refusals = (...wanted: Status[]) =>
  Object.fromEntries(wanted.map(status => [status, { $ref: `#/components/responses/Failure${status}` }]))

function failureResponse(status: Status) {
  const header = responseHeaders[status]
  return {
    description: meanings(status).join('. '),
    ...(header && {
      headers: {
        [header]: { description: headerMeanings[header], required: true, schema: { type: 'string' } },
      },
    }),
  }
}

const responseHeaders: Partial<Record<Status, keyof typeof headerMeanings>> = {
  401: 'WWW-Authenticate',
  403: 'WWW-Authenticate',
  405: 'Allow',
  429: 'Retry-After',
  503: 'Retry-After',
}
const headerMeanings = {
  'WWW-Authenticate': 'What is wrong with the credentials (RFC 6750, 3)',
  Allow: 'The methods at this path',
  'Retry-After': 'Seconds to wait before trying again',
}

const numbersOf = (status: Status) =>
  Object.values(failures).filter(({ number }) => Math.floor(number / 100) === status)
const meanings = (status: Status) => numbersOf(status).map(({ number, meaning }) => `${number}: ${meaning}`)

function failureTable(): string {
  const rows = Object.values(failures).map(({ number, meaning }) => `| ${number} | ${meaning} |`)
  return ['| error | meaning |', '|---|---|', ...rows].join('\n')
}

function openPage(operationId: string, summary: string, schema: object, ...more: Status[]) {
  return {
    operationId,
    tags: ['service'],
    summary,
    security: [],
    responses: {
      200: { description: summary, ...json(schema) },
      ...refusals(400, 408, 417, 431, 500, 503, ...more),
    },
  }
}

function ref(name: keyof typeof schemas) {
  return { $ref: `#/components/schemas/${name}` }
}

function json(schema: object) {
  return { content: { 'application/json': { schema } } }
}

/** Of ES2026; TypeScript doesn't know it yet. */
const { rawJSON } = JSON as JSON & { rawJSON(text: string): unknown }

/** The bounds of an int64 are no JavaScript numbers, so their digits are written as they are. */
function withExactBounds(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !('format' in value) || value.format !== 'int64')
    return value
  return { ...value, minimum: rawJSON(`${plantIdMin}`), maximum: rawJSON(`${plantIdMax}`) }
}
