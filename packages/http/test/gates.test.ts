import { AccessError, type Gate } from '@plant-store/access'
import { DomainError } from '@plant-store/domain'
import { afterAll, expect, test, vi } from 'vitest'
import { startService } from './memory-service.ts'

const gate = vi.fn<(...request: Parameters<Gate>) => unknown>()
const created: unknown[] = []
const service = await startService({
  gate: gate as Gate,
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

test('a holder, or a promise of one, admits', async () => {
  expect(await ask(() => holder)).toEqual([200, { name: 'Ficus' }])
  expect(await ask(async () => holder)).toEqual([200, { name: 'Ficus' }])
})

test('a gate sees the token, the scope and the names of fields in lower case', async () => {
  gate.mockReset().mockReturnValue(holder)

  await fetch(`${service.url}/plants`, {
    headers: { authorization: 'bearer a.b', 'X-Tenant': 'north' },
  })
  await fetch(`${service.url}/plants/1`, { method: 'DELETE' })

  const northern = expect.objectContaining({ 'x-tenant': 'north' })
  expect(gate.mock.calls).toEqual([
    [expect.objectContaining({ token: 'a.b', headers: northern }), 'plants:read'],
    [expect.objectContaining({ token: undefined }), 'plants:write'],
  ])
})

test.each<[string, AnyGate, status: number]>([
  ['an AccessError', () => raise(invalid), 401],
  ['an AccessError about the scope', () => raise(lacking), 403],
  ['a rejection', () => Promise.reject(invalid), 401],
  ['not now', () => raise(unavailable), 503],
  ['not now, later', async () => raise(unavailable), 503],
  ['an error', () => raise(new Error('a defect')), 500],
  ['a rejection with an error', async () => raise(new Error('a defect')), 500],
  ['a rejection without a reason', () => Promise.reject(), 500],
  ['throw undefined', () => raise(undefined), 500],
  ['no holder', () => undefined, 500],
  ['a promise of no holder', async () => undefined, 500],
])('%s admits nobody', async (_, gate, status) => {
  const answer = await ask(gate)

  const failure = { error: expect.any(Number), message: expect.any(String) }
  expect(answer).toEqual([status, failure])
  expect(created).toEqual([])
})

test('a store that cannot look up a token leaves no doubt about changes', async () => {
  const answer = await ask(async () => raise(new DomainError('store-unavailable', 'no')))

  // Error 50302 would say that a change may have been made.
  expect(answer).toMatchObject([503, { error: 50306 }])
  expect(created).toEqual([])
})

/** Returns the answer to a create, as its status and its body. */
async function ask(admit: AnyGate) {
  gate.mockImplementation(admit)
  created.length = 0
  const authorization = 'Bearer forged'
  const response = await fetch(`${service.url}/plants`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: '{"id": 1, "name": "Ficus"}',
    signal: AbortSignal.timeout(20_000),
  })
  return [response.status, await response.json()]
}
