import assert from 'node:assert/strict'
import { METHODS } from 'node:http'
import { assertFailure } from '../assertions.ts'
import { bareRequest } from '../client.ts'
import {
  type ContractCase,
  casesForEach,
  casesOf,
  type Paths,
  plantPaths,
} from '../contract-case.ts'

const clause = 'the request around the operation'

const operationsOf = (paths: Paths) =>
  Object.entries(paths).flatMap(([path, methods]) =>
    methods.map(method => `${method} ${path}`),
  )

/** Returns the cases of what every operation refuses. */
export const aroundPaths = (paths: Paths): readonly ContractCase[] => [
  ...casesForEach(
    clause,
    Object.keys(paths),
    path => `every method that ${path} does not have gets 405, with Allow`,
    async (client, path) => {
      const methods = paths[path] as readonly string[]
      const allowed = (
        methods.includes('GET') ? [...methods, 'HEAD'] : [...methods]
      ).sort()
      const unasked = [...allowed, 'HEAD', 'CONNECT']
      for (const method of METHODS.filter(each => !unasked.includes(each))) {
        const answer = await client.askBare(`${method} ${path}`, ['content-length: 0'])
        assertFailure(answer, 40501, ...allowed)
        const declared = answer.headers.get('allow')?.split(', ')
        assert.deepEqual(declared?.sort(), allowed, method)
      }
    },
  ),

  ...casesForEach(
    clause,
    operationsOf(paths),
    operation => `${operation} refuses a wrong Host or expectation, and fields too large`,
    async (client, operation) => {
      const { tokens, headerBytesMax } = client.store
      const token = operation.endsWith('/metrics') ? tokens.metrics : tokens.full
      const bearer = `authorization: Bearer ${token}`
      const asked = client.asked(operation)
      const askWith = (...fields: readonly string[]) =>
        client.exchange(asked, bareRequest(asked, [bearer, ...fields]))
      const long = 'y'.repeat(headerBytesMax)
      const many = Array.from(
        { length: 40 },
        (_, n) => `x-${n}: ${'y'.repeat(headerBytesMax / 40)}`,
      )

      const withoutHost = await askWith()
      const withTwoHosts = await askWith('host: a', 'host: a')
      const withExpectation = await client.askBare(operation, ['expect: a miracle'])
      const withLongField = await client.askBare(operation, [`x: ${long}`])
      const withManyFields = await client.askBare(operation, many)
      const withLongTarget = await client.askBare(`${operation}?x=${long}`)

      assertFailure(withoutHost, 40007, 'host')
      assertFailure(withTwoHosts, 40007, 'host')
      assertFailure(withExpectation, 41701)
      assert.equal(withExpectation.headers.get('connection'), 'close')
      assertFailure(withLongField, 43101)
      assertFailure(withManyFields, 43101)
      assertFailure(withLongTarget, 43101)
      assert.equal(withLongField.headers.get('connection'), 'close')
      assert.equal(withManyFields.headers.get('connection'), 'close')
    },
  ),
]

/** Paths at which nothing is. */
const nearPaths = [
  '/plant',
  '/plants/1/',
  '/plants/1/x',
  '/plants//',
  '//plants',
  '/v1/plants',
  '/Plants',
]

/** The cases of what every operation on plants refuses. */
export const aroundPlants: readonly ContractCase[] = [
  ...aroundPaths(plantPaths),

  ...casesForEach(
    clause,
    operationsOf(plantPaths),
    operation => `${operation} refuses a query parameter that it does not have`,
    async (client, operation) => {
      const [method, target] = operation.split(' ') as [string, string]

      const answer = await client.ask(method, `${target}?unheard_of=1`)

      assertFailure(answer, 40012, 'unheard_of', 'this operation has')
      if (method === 'GET') {
        const head = await client.ask('HEAD', `${target}?unheard_of=1`)
        assert.equal(head.status, 400)
      }
    },
  ),

  ...casesForEach(
    'paths near /plants',
    nearPaths.flatMap(path => [`GET ${path}`, `POST ${path}`, `DELETE ${path}`]),
    request => `get 404 where nothing is: ${request}`,
    async (client, request) => assertFailure(await client.askBare(request), 40401),
  ),

  ...casesOf('paths near /plants', {
    'that end in a slash get the advice to leave it out': async client => {
      const advice = 'without the slash at its end'
      assertFailure(await client.ask('POST', '/plants/'), 40501, advice)
      assertFailure(await client.ask('GET', '/plants/1/?a'), 40401, advice)
      assertFailure(await client.ask('GET', '/plants/'), 40004, 'after its last slash')

      const other = await client.ask('GET', '/nowhere?a/')
      assert.doesNotMatch(`${other.body}`, /slash/)
    },
  }),

  ...casesForEach(
    clause,
    operationsOf(plantPaths).filter(operation => !/^GET|batch$/.test(operation)),
    operation =>
      `${operation} with a body of another media type or too large gets 415 or 413`,
    async (client, operation) => {
      const [method, target] = operation.split(' ') as [string, string]
      const headers = { 'content-type': 'text/plain' }
      const { bodyBytesMax } = client.store
      const body = `"${'x'.repeat(bodyBytesMax)}"`

      const ofOtherType = await client.ask(method, target, { body: '{}', headers })
      const tooLarge = await client.ask(method, target, { body })

      assertFailure(ofOtherType, 41501)
      assertFailure(tooLarge, 41301, `${bodyBytesMax}`)
    },
  ),
]

/** Every operation with every kind of token. */
export const tokenCases: readonly ContractCase[] = casesForEach(
  'every operation needs a token',
  operationsOf(plantPaths),
  operation =>
    `${operation} gets 401 without one or with a wrong one, and 403 without its scope`,
  async (client, operation) => {
    const [method, target] = operation.split(' ') as [string, string]
    const { readOnly, writeOnly } = client.store.tokens
    const [other, scope] = method === 'GET' ? [writeOnly, 'read'] : [readOnly, 'write']
    const refused = async (token: string | null, error: number, rest: string) => {
      const answer = await client.ask(method, target, { token })
      assertFailure(answer, error)
      const challenge = new RegExp(`^Bearer realm="plant-store"${rest}$`)
      assert.match(answer.headers.get('www-authenticate') ?? 'none', challenge)
    }
    await refused(null, 40101, '')
    await refused('plantstore_wrong', 40102, ', error="invalid_token".*')
    await refused(other, 40301, `, error="insufficient_scope".*, scope="plants:${scope}"`)
  },
)
