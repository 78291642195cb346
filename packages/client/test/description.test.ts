import * as exported from '@plant-store/client'
import {
  createPlantClient,
  errorNumbers,
  type PlantClient,
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
const description = (await (
  await fetch(`${store.baseUrl}/openapi.json`)
).json()) as Description
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
const query = { limit: 7, after: -1n, tag: 't', name_contains: 'n', count: false }
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

const methodOf = ({ operationId }: Operation) =>
  (operationId === 'createPlants'
    ? 'createMany'
    : operationId.replace(/Plants?$/, '')) as keyof PlantClient

test('the numbers that the client names are those that the server publishes', () => {
  for (const [name, number] of Object.entries(errorNumbers)) {
    expect(failures[name as keyof typeof errorNumbers][0], name).toBe(number)
  }
})

test('every entity has a client', () => {
  const entities = new Set(
    operations.flatMap(({ tags }) => tags).filter(tag => tag !== 'service'),
  )
  for (const [first = '', ...rest] of entities) {
    expect(exported).toHaveProperty(
      `create${first.toUpperCase()}${rest.join('').slice(0, -1)}Client`,
    )
  }
})

test('the client has a method for every operation on plants, and no other', () => {
  const client = createPlantClient({ baseUrl: 'http://localhost', token: 't' })
  // `pages` is `list`, again and again; `readVersioned` is `read`, and says more.
  expect(
    Object.keys(client)
      .filter(name => name !== 'pages' && name !== 'readVersioned')
      .sort(),
  ).toEqual(plantOperations.map(methodOf).sort())
})

test.each(plantOperations)('$operationId sends what is described', async operation => {
  const name = methodOf(operation)
  for (const method of name === 'list' ? (['list', 'pages'] as const) : [name]) {
    const { request } = await call(method, 599, '')
    const { pathname, searchParams } = new URL(request.url)
    expect(request.method, `${method}`).toBe(operation.method)
    expect(pathname, `${method}`).toBe(operation.path.replace('{id}', '1'))
    const described = (place: Parameter['in']) =>
      (operation.parameters ?? [])
        .filter(each => each.in === place)
        .map(({ name }) => name)
    expect([...searchParams.keys()].sort(), `${method}`).toEqual(
      described('query').sort(),
    )
    const conditions = [...request.headers.keys()].filter(name => name.startsWith('if-'))
    expect(
      described('header').map(name => name.toLowerCase()),
      `${method}`,
    ).toEqual(expect.arrayContaining(conditions))
    expect(conditions, `${method}`).toHaveLength(
      { replace: 2, remove: 1 }[method as string] ?? 0,
    )
    expect(request.headers.get('authorization'), `${method}`).toBe('Bearer t')
    expect(request.headers.get('accept'), `${method}`).toBe('application/json')
    const [[mediaType, { schema }] = ['', {}]] = Object.entries<{ schema?: object }>(
      operation.requestBody?.content ?? {},
    )
    expect(request.headers.get('content-type') ?? '', `${method}`).toBe(mediaType)
    const body = await bodyOf(request)
    expect(body, `${method}`).toSatisfy(schema ? validator(schema) : isAbsent)
  }
})

const isAbsent = (body: unknown) => body === null

/** Returns what a request sends, or `null` if it has no body. */
async function bodyOf(request: Request): Promise<unknown> {
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
  '$operationId understands its status $status, and no other good one',
  async operation => {
    const method = methodOf(operation)
    const goodBody = goodBodies[method]
    const { outcome } = await call(method, operation.status, goodBody)
    expect(outcome).not.toBeInstanceOf(Error)

    const others = [200, 201, 202, 204].filter(status => !(status in operation.responses))
    for (const status of others) {
      const body = status === 204 ? '' : goodBody
      const other = await call(method, status, body)
      expect(other.outcome, `${status}`).toBeInstanceOf(Error)
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

/** The request of a method, and its result of an answer. */
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
  return { request: request as unknown as Request, outcome }
}

function validator(schema: object): (value: unknown) => boolean {
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  return value => ajv.validate({ ...schema, components: description.components }, value)
}
