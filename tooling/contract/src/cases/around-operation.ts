import assert from 'node:assert/strict'
import { METHODS } from 'node:http'
import { bareRequest } from '../client.ts'
import {
  assertFailure,
  type ContractCase,
  casesForEach,
  casesOf,
  type Entity,
  type Paths,
  words,
} from '../contract-case.ts'

const operationsOf = (paths: Paths) =>
  Object.entries(paths).flatMap(([path, methods]) => methods.map(method => `${method} ${path}`))

/** What every operation refuses. */
export const aroundPaths = (paths: Paths): readonly ContractCase[] => [
  ...casesForEach(
    'the request around the operation',
    Object.keys(paths),
    path => `every method that ${path} does not have gets 405, with Allow`,
    async (client, path) => {
      const methods = paths[path] as readonly string[]
      const allowed = (methods.includes('GET') ? [...methods, 'HEAD'] : [...methods]).sort()
      const unasked = [...allowed, 'HEAD', 'CONNECT']
      for (const method of METHODS.filter(each => !unasked.includes(each))) {
        const answer = await client.askBare(`${method} ${path}`, ['content-length: 0'])
        assertFailure(answer, 40501, ...allowed)
        assert.deepEqual(answer.headers.get('allow')?.split(', ').sort(), allowed)
      }
    },
  ),

  ...aroundOperations(operationsOf(paths)),
]

const aroundOperations = (operations: readonly string[]): readonly ContractCase[] => [
  ...casesForEach(
    'one shape for every failure',
    operations,
    operation => `${operation} without a Host, or with two, gets 400`,
    async (client, operation) => {
      const asked = client.asked(operation)
      const token = `authorization: Bearer ${client.store.tokens.full}`
      for (const hosts of [[], ['host: a', 'host: a'], ['host: a', 'Host: b']])
        assertFailure(await client.exchange(asked, bareRequest(asked, [token, ...hosts])), 40007, 'host')
    },
  ),

  ...casesForEach(
    'the request around the operation',
    operations,
    operation => `${operation} with header fields too large gets 431`,
    async (client, operation) => {
      const { headerBytesMax } = client.store
      const many = Array.from({ length: 40 }, (_, n) => `x-${n}: ${'y'.repeat(headerBytesMax / 40)}`)
      for (const fields of [[`x: ${'y'.repeat(headerBytesMax)}`], many]) {
        const answer = await client.askBare(operation, fields)
        assertFailure(answer, 43101)
        assert.equal(answer.headers.get('connection'), 'close')
      }
      assertFailure(await client.askBare(`${operation}?x=${'y'.repeat(headerBytesMax)}`), 43101)
    },
  ),

  ...casesForEach(
    'the request around the operation',
    operations,
    operation => `${operation} with a query parameter that it does not have gets 400`,
    async (client, operation) => {
      const [method, path] = operation.split(' ') as [string, string]
      const { full, metrics } = client.store.tokens
      const asked = [`${path}?unheard_of=1`, { token: path === '/metrics' ? metrics : full }] as const
      assertFailure(await client.ask(method, ...asked), 40012, 'unheard_of', 'this operation has')
      if (method === 'GET') assert.equal((await client.ask('HEAD', ...asked)).status, 400)
    },
  ),

  ...casesForEach(
    'the request around the operation',
    operations,
    operation => `${operation} with an expectation that can't be met gets 417`,
    async (client, operation) => assertFailure(await client.askBare(operation, ['expect: a miracle']), 41701),
  ),
]

/** What every operation on an entity refuses. */
export const aroundEntity = ({ path, paths }: Entity): readonly ContractCase[] => [
  ...aroundPaths(paths),

  ...casesOf(`paths near ${path}`, {
    'get 404 where nothing is': async client => {
      for (const near of words(`${path.slice(0, -1)} ${path}/1/ ${path}/1/x ${path}// /${path} /v1${path}`))
        for (const method of ['GET', 'POST', 'DELETE']) assertFailure(await client.ask(method, near), 40401)
    },
  }),

  ...casesForEach(
    'every operation needs a token',
    operationsOf(paths),
    operation => `${operation} gets 401 without one or with a wrong one, and 403 without its scope`,
    async (client, operation) => {
      const [method, target] = operation.split(' ') as [string, string]
      const { readOnly, writeOnly } = client.store.tokens
      const [other, scope] = method === 'GET' ? [writeOnly, 'read'] : [readOnly, 'write']
      const realm = 'Bearer realm="plant-store"'
      for (const [token, error, challenge] of [
        [null, 40101, /^Bearer realm="plant-store"$/],
        ['plantstore_wrong', 40102, new RegExp(`^${realm}, error="invalid_token"`)],
        [
          other,
          40301,
          new RegExp(`^${realm}, error="insufficient_scope".*, scope="${path.slice(1)}:${scope}"$`),
        ],
      ] as const) {
        const answer = await client.ask(method, target, { token })
        assertFailure(answer, error)
        assert.match(answer.headers.get('www-authenticate') ?? 'none', challenge)
      }
    },
  ),

  ...casesForEach(
    'the request around the operation',
    operationsOf(paths).filter(operation => !/^GET|batch$/.test(operation)),
    operation => `${operation} with a body of another media type or too large gets 415 or 413`,
    async (client, operation) => {
      const [method, target] = operation.split(' ') as [string, string]
      const headers = { 'content-type': 'text/plain' }
      assertFailure(await client.ask(method, target, { body: '{}', headers }), 41501)
      const body = `${'{"name":"'.padEnd(client.store.bodyBytesMax - 1, 'x')}"}`
      assertFailure(await client.ask(method, target, { body }), 41301, `${client.store.bodyBytesMax}`)
    },
  ),
]
