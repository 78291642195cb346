import { AccessError, type Gate } from '@plant-store/access'
import { DomainError } from '@plant-store/domain'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { startMemoryService } from './memory-service.ts'

const unhandled: unknown[] = []
const noteUnhandled = (reason: unknown) => unhandled.push(reason)
beforeEach(() => void process.on('unhandledRejection', noteUnhandled))
afterEach(() => {
  process.off('unhandledRejection', noteUnhandled)
  expect(unhandled.splice(0)).toEqual([])
})

/** What a gate may return or throw, whatever its type promises. */
type AnyGate = () => unknown

const holder = { name: 'flora' }
const invalid = new AccessError('invalid-token', 'the access token is unknown')
const lacking = new AccessError('insufficient-scope', 'the access token lacks a scope', 'plants:write')
const unavailable = new AccessError('access-unavailable', 'the identity provider does not answer')
const raise = (error: unknown) => {
  throw error
}

test.each<[string, AnyGate]>([
  ['a holder', () => holder],
  ['a promise of a holder', async () => holder],
])('%s admits', async (_, gate) => {
  expect(await ask(gate)).toEqual([[200, { name: 'Ficus' }], 1])
})

test.each<[string, AnyGate, status: number]>([
  ['an AccessError', () => raise(invalid), 401],
  ['an AccessError about the scope', () => raise(lacking), 403],
  ['a rejection', () => Promise.reject(invalid), 401],
  ['not now', () => raise(unavailable), 503],
  ['not now, later', async () => raise(unavailable), 503],
  ['a store that cannot be asked', async () => raise(new DomainError('store-unavailable', 'no')), 503],
  ['an error', () => raise(new Error('a defect')), 500],
  ['a rejection with an error', async () => raise(new Error('a defect')), 500],
  ['a rejection without a reason', () => Promise.reject(), 500],
  ['throw undefined', () => raise(undefined), 500],
  ['throw null', () => raise(null), 500],
  ['throw 0', () => raise(0), 500],
  ['throw a text', () => raise('no'), 500],
  ['a rejection with false', () => Promise.reject(false), 500],
  ['a rejection with an empty text', () => Promise.reject(''), 500],
  ...[
    undefined,
    null,
    false,
    true,
    0,
    'flora',
    {},
    [],
    { name: '' },
    { name: 7 },
    { name: null },
    Object,
    invalid,
  ].flatMap((value): [string, AnyGate, number][] => [
    [`${kind(value)}`, () => value, 500],
    [`a promise of ${kind(value)}`, async () => value, 500],
  ]),
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
  const [answer, plants] = await ask(gate)
  expect(answer).toEqual([status, { error: expect.any(Number), message: expect.any(String) }])
  expect(plants).toBe(0)
})

function kind(value: unknown): string {
  if (value instanceof Error) return 'an AccessError that is not thrown'
  return typeof value === 'function' ? 'a function' : (JSON.stringify(value) ?? 'undefined')
}

test.each<[string, AnyGate, RegExp]>([
  ['returns no holder', () => undefined, /TypeError: the gate returned no holder with a name/],
  ['throws nothing', () => raise(undefined), /Error: the gate failed with undefined/],
])('why a gate that %s admits nobody is in the log', async (_, gate, reason) => {
  await using service = await startMemoryService({ gate: gate as Gate })
  await fetch(`${service.url}/plants`)
  expect(service.logged).toEqual([['error', expect.stringMatching(reason)]])
})

/** @returns how a create was answered, and how many plants there are after it */
async function ask(gate: AnyGate) {
  let created = 0
  await using service = await startMemoryService({
    gate: gate as Gate,
    plants: {
      insert: async () => {
        created++
        return 'inserted'
      },
    },
  })
  const response = await fetch(`${service.url}/plants`, {
    method: 'POST',
    headers: { authorization: 'Bearer forged', 'content-type': 'application/json' },
    body: '{"id": 1, "name": "Ficus"}',
    signal: AbortSignal.timeout(2_000),
  })
  return [[response.status, await response.json()], created]
}
