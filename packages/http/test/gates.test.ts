import { AccessError, type Gate } from '@plant-store/access'
import { DomainError } from '@plant-store/domain'
import { afterAll, expect, test } from 'vitest'
import { startService } from './memory-service.ts'

let given: Gate
const created: unknown[] = []
const service = await startService({
  gate: (credentials, scope) => given(credentials, scope),
  plants: {
    async insert(plant) {
      created.push(plant)
      return 'inserted'
    },
  },
})

const unhandled: unknown[] = []
const noteUnhandled = (reason: unknown) => unhandled.push(reason)
process.on('unhandledRejection', noteUnhandled)
afterAll(async () => {
  process.off('unhandledRejection', noteUnhandled)
  expect(unhandled).toEqual([])
  await service[Symbol.asyncDispose]()
})

/** A gate that may return or throw anything, whatever its type promises. */
type AnyGate = () => unknown

const holder = { name: 'flora' }
const invalid = new AccessError('invalid-token', 'the access token is unknown')
const lacking = new AccessError(
  'insufficient-scope',
  'the access token lacks a scope',
  'plants:write',
)
const unavailable = new AccessError(
  'access-unavailable',
  'the identity provider does not answer',
)
const raise = (error: unknown) => {
  throw error
}

test.each<[string, AnyGate]>([
  ['a holder', () => holder],
  ['a promise of a holder', async () => holder],
])('%s admits', async (_, gate) => {
  expect(await ask(gate)).toEqual([200, { name: 'Ficus' }])
  expect(created).toHaveLength(1)
})

test('a gate sees the token, the scope and the names of fields in lower case', async () => {
  const seen: unknown[] = []
  given = ({ token, headers }, scope) => {
    seen.push([token, headers['x-tenant'], scope])
    return holder
  }
  await fetch(`${service.url}/plants`, {
    headers: { authorization: 'bearer a.b', 'X-Tenant': 'north' },
  })
  await fetch(`${service.url}/plants/1`, { method: 'DELETE' })
  expect(seen).toEqual([
    ['a.b', 'north', 'plants:read'],
    [undefined, undefined, 'plants:write'],
  ])
})

test.each<[string, AnyGate, status: number]>([
  ['an AccessError', () => raise(invalid), 401],
  ['an AccessError about the scope', () => raise(lacking), 403],
  ['a rejection', () => Promise.reject(invalid), 401],
  ['not now', () => raise(unavailable), 503],
  ['not now, later', async () => raise(unavailable), 503],
  [
    'a store that cannot be asked',
    async () => raise(new DomainError('store-unavailable', 'no')),
    503,
  ],
  ['an error', () => raise(new Error('a defect')), 500],
  ['a rejection with an error', async () => raise(new Error('a defect')), 500],
  ['a rejection without a reason', () => Promise.reject(), 500],
  ['throw undefined', () => raise(undefined), 500],
  ['a rejection with an empty text', () => Promise.reject(''), 500],
  ...[undefined, null, 'flora', {}, { name: '' }, { name: 7 }, Object, invalid].flatMap(
    (value): [string, AnyGate, number][] => [
      [`${value?.constructor.name} that is no holder`, () => value, 500],
      [
        `a promise of ${value?.constructor.name} that is no holder`,
        async () => value,
        500,
      ],
    ],
  ),
  [
    'a getter that throws',
    () => ({
      get name() {
        return raise(undefined)
      },
    }),
    500,
  ],
])('%s admits nobody', async (_, gate, status) => {
  expect(await ask(gate)).toEqual([
    status,
    { error: expect.any(Number), message: expect.any(String) },
  ])
  expect(created).toEqual([])
})

test.each<[string, AnyGate, RegExp]>([
  [
    'returns no holder',
    () => undefined,
    /TypeError: the gate returned no holder with a name/,
  ],
  ['throws nothing', () => raise(undefined), /Error: the gate failed with undefined/],
])('why a gate that %s admits nobody is in the log', async (_, gate, reason) => {
  const before = service.logged.length
  await ask(gate)
  expect(service.logged.slice(before)).toEqual([['error', expect.stringMatching(reason)]])
})

/** @returns how a create is answered */
async function ask(gate: AnyGate) {
  given = gate as Gate
  created.length = 0
  const response = await fetch(`${service.url}/plants`, {
    method: 'POST',
    headers: { authorization: 'Bearer forged', 'content-type': 'application/json' },
    body: '{"id": 1, "name": "Ficus"}',
    signal: AbortSignal.timeout(2_000),
  })
  return [response.status, await response.json()]
}
