import assert from 'node:assert/strict'
import * as exported from '@plant-store/client'
import {
  createPlantClient,
  errorNumbers,
  type PlantClient,
  type PlantListQuery,
  RefusedError,
  type Version,
} from '@plant-store/client'
import { failures } from '@plant-store/http/server'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect, test } from 'vitest'
import { startMemoryStore } from './memory-store.ts'

/**
 * Holds the client against the description that the server serves, so that neither can
 * change alone.
 */

interface Operation {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: {
    readonly content: Readonly<Record<string, { readonly schema: object }>>
  }
  readonly responses: Readonly<Record<string, object>>
}
interface Parameter {
  readonly name: string
  readonly in: 'query' | 'path' | 'header'
}
interface Description {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: {
    readonly responses: Readonly<Record<string, { readonly description: string }>>
  }
}

await using store = await startMemoryStore()
const served = await fetch(`${store.baseUrl}/openapi.json`)
const description: Description = JSON.parse(await served.text())
const operations = Object.entries(description.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({
    path,
    method: method.toUpperCase(),
    ...operation,
  })),
)
const plantOperations = operations.filter(({ tags }) => tags.includes('plants'))

/** One call of every method of the client, with all that it can send. */
const calls: {
  readonly [Method in keyof PlantClient]: (client: PlantClient) => Promise<unknown>
} = {
  create: client => client.create(plant),
  createMany: client => client.createMany([plant], { announce: false }),
  read: client => client.read(1n),
  readVersioned: client => client.readVersioned(1n),
  list: client => client.list(query),
  pages: client => client.pages(query).next(),
  replace: client => client.replace(plant, { ifMatch: version, ifNoneMatch: '*' }),
  remove: client => client.remove(1n, { ifMatch: version }),
}
const query: Required<PlantListQuery> = {
  limit: 7,
  after: -1n,
  tag: 't',
  name_contains: 'n',
  count: false,
}
const version = 'v1' as Version
const plant = { id: 1n, name: 'n', tag: 't' }
const goodBodies = {
  create: '{"name":"n"}',
  createMany: '{"created":1,"existing":0,"refused":0,"faults":[]}',
  read: '{"id":1,"name":"n"}',
  readVersioned: '{"id":1,"name":"n"}',
  list: '[]',
  pages: '[]',
  replace: '{"name":"n"}',
  remove: '',
}

function methodOf({ operationId }: Operation) {
  const name = operationId.replace(/Plants$/, 'Many').replace(/Plant$/, '')
  const method = name === 'listMany' ? 'list' : name
  assert(isMethod(method), `the client has no method ${method}`)
  return method
}

function isMethod(name: string): name is keyof PlantClient {
  return Object.hasOwn(calls, name)
}

test('the numbers that the client names are those that the server publishes', () => {
  const published = new Map<string, number>()
  for (const [name, [number]] of Object.entries(failures)) {
    published.set(name, number)
  }

  expect(Object.fromEntries(published)).toMatchObject(errorNumbers)
})

test('every entity has a client', () => {
  const tags = new Set(operations.flatMap(operation => operation.tags))
  tags.delete('service')

  const clients = [...tags].map(nameOfClient)

  expect(Object.keys(exported)).toEqual(expect.arrayContaining(clients))
})

/** Returns `createPlantClient` for the tag `plants`. */
function nameOfClient(tag: string) {
  return `create${tag.charAt(0).toUpperCase()}${tag.slice(1, -1)}Client`
}

test('the client has a method for every operation on plants, and no other', () => {
  const client = createPlantClient({ baseUrl: 'http://localhost', token: 't' })
  // `pages` repeats `list`, and `readVersioned` returns more of the answer to a read.
  const methods = [...plantOperations.map(methodOf), 'pages', 'readVersioned']

  expect(Object.keys(client).sort()).toEqual(methods.sort())
})

const requests = plantOperations.flatMap(operation => {
  const method = methodOf(operation)
  const methods = method === 'list' ? ([method, 'pages'] as const) : [method]
  return methods.map(method => ({ ...operation, clientMethod: method }))
})
const noContent = [null, { schema: { type: 'null' } }] as const
const conditionsByMethod: Partial<Record<keyof PlantClient, readonly string[]>> = {
  replace: ['if-match', 'if-none-match'],
  remove: ['if-match'],
}

test.each(requests)('the request of $clientMethod is as described', async operation => {
  const { request } = await call(operation.clientMethod, 599, '')

  const { pathname, searchParams } = new URL(request.url)
  expect(request.method).toBe(operation.method)
  expect(pathname).toBe(operation.path.replace('{id}', '1'))
  const queryNames = [...searchParams.keys()].sort()
  expect(queryNames).toEqual(parameters(operation, 'query').sort())

  const { headers } = request
  const conditions = [...headers.keys()].filter(name => name.startsWith('if-'))
  const fields = parameters(operation, 'header').map(name => name.toLowerCase())
  expect(fields).toEqual(expect.arrayContaining(conditions))
  expect(conditions).toEqual(conditionsByMethod[operation.clientMethod] ?? [])
  expect(headers.get('authorization')).toBe('Bearer t')
  expect(headers.get('accept')).toBe('application/json')

  const content = Object.entries(operation.requestBody?.content ?? {})
  const [mediaType, body] = content[0] ?? noContent
  expect(headers.get('content-type')).toBe(mediaType)
  expect(await bodyOf(request)).toSatisfy(validator(body.schema))
})

function parameters(operation: Operation, place: Parameter['in']) {
  const { parameters = [] } = operation
  return parameters.filter(parameter => parameter.in === place).map(({ name }) => name)
}

/** Returns the body of a request, or `null` if it has none. */
async function bodyOf(request: Request) {
  if (request.body === null) {
    return null
  }
  const isJson = request.headers.get('content-type') === 'application/json'
  return await (isJson ? request.json() : request.text())
}

const answers = plantOperations.flatMap(operation =>
  Object.keys(operation.responses)
    // No client is told so that has not sent what it holds in If-None-Match.
    .filter(status => status !== '304')
    .map(status => ({ ...operation, status: Number(status) })),
)

test.each(answers.filter(({ status }) => status < 300))(
  '$operationId understands its status $status, and none that it has not',
  async operation => {
    const method = methodOf(operation)
    const goodBody = goodBodies[method]
    const { outcome } = await call(method, operation.status, goodBody)
    expect(outcome).not.toBeInstanceOf(Error)

    const otherStatuses = [200, 201, 202, 204].filter(
      status => !(status in operation.responses),
    )
    for (const status of otherStatuses) {
      const answer = await call(method, status, status === 204 ? '' : goodBody)
      expect(answer.outcome, `the outcome of ${status}`).toBeInstanceOf(Error)
    }
  },
)

test.each(answers.filter(({ status }) => status >= 300))(
  '$operationId is refused by its status $status',
  async operation => {
    const { status } = operation
    const body = '{"error":49999,"message":"no"}'
    const { outcome } = await call(methodOf(operation), status, body)
    expect(outcome).toBeInstanceOf(RefusedError)
    const refusal = { name: 'RefusedError', status, number: 49999, message: 'no' }
    expect(outcome).toMatchObject(refusal)
  },
)

test('the published error numbers mean what the client takes them for', () => {
  const numbers = Object.values(description.components.responses)
    .map(({ description }) => description)
    .join('\n')
  const meaning = (number: number) =>
    new RegExp(`^- ${number}: (.*)$`, 'm').exec(numbers)?.[1]
  expect(meaning(40402)).toBe('There is no plant with this id')
  expect(meaning(50301)).toMatch(/^Too many changes are pending/)
  expect(meaning(50302)).toMatch(/may or may not have been made/)
  expect(meaning(50303)).toMatch(/^The server is shutting down/)
})

/** Calls a method, and returns its request, and its result or error of this answer. */
async function call(method: keyof PlantClient, status: number, body: string) {
  let request: Request | undefined
  const client = createPlantClient({
    baseUrl: 'http://localhost',
    token: 't',
    attemptsMax: 1,
    fetch: async (url, init) => {
      request = new Request(url, init)
      const isEmpty = status === 204 || status === 304
      return new Response(isEmpty ? null : body, { status, headers: { etag: '"v2"' } })
    },
  })
  const outcome: unknown = await calls[method](client).catch(error => error)
  assert(request !== undefined, `the client sends nothing: ${outcome}`)
  return { request, outcome }
}

function validator(schema: object): (value: unknown) => boolean {
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  return value => ajv.validate({ ...schema, components: description.components }, value)
}
