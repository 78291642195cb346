import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { createContext, runInContext } from 'node:vm'
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

type Settle = (resolve: (value: unknown) => void, reject: (reason: unknown) => void) => void
/** Nothing but `then`, as little as any promise has. */
const withThen = (then: Settle) => Object.fromEntries([['then', then]])
const thenable = (settle: Settle) => withThen((...callbacks) => void setImmediate(() => settle(...callbacks)))
const elsewhere = createContext()
const otherRealm = (code: string) => runInContext(code, elsewhere)

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
  ['a thenable of a holder', () => thenable(resolve => resolve(holder))],
  ['a thenable of a promise of a holder', () => thenable(resolve => resolve(Promise.resolve(holder)))],
  ["another realm's holder", () => otherRealm('({ name: "flora" })')],
  ["another realm's promise", () => otherRealm('Promise.resolve({ name: "flora" })')],
])('%s admits', async (_, gate) => {
  expect(await ask(gate)).toEqual([[200, { name: 'Ficus' }], 1])
})

test.each<[string, AnyGate, status: number]>([
  ['an AccessError', () => raise(invalid), 401],
  ['an AccessError about the scope', () => raise(lacking), 403],
  ['a rejection', () => Promise.reject(invalid), 401],
  ['a rejected thenable', () => thenable((_, reject) => reject(invalid)), 401],
  ['a rejected thenable, about the scope', () => thenable((_, reject) => reject(lacking)), 403],
  ['a thenable that throws', () => withThen(() => raise(invalid)), 401],
  ['a thenable of a rejection', () => thenable(resolve => resolve(Promise.reject(invalid))), 401],
  ['a thenable that settles twice', () => thenable((ok, no) => [no(invalid), ok(holder), no(lacking)]), 401],
  ["another realm's rejection", () => otherRealm('Promise.reject({ statusCode: 401 })'), 401],
  ['not now', () => raise(unavailable), 503],
  ['not now, later', async () => raise(unavailable), 503],
  ['a store that cannot be asked', async () => raise(new DomainError('store-unavailable', 'no')), 503],
  ['an error', () => raise(new Error('a defect')), 500],
  ['a rejection with an error', async () => raise(new Error('a defect')), 500],
  ['a rejection without a reason', () => Promise.reject(), 500],
  ['a rejected thenable without a reason', () => thenable((_, reject) => reject(undefined)), 500],
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
    [`a thenable of ${kind(value)}`, () => thenable(resolve => resolve(value)), 500],
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
  [
    'a then that throws when it is read',
    () => Object.defineProperty({}, 'then', { get: () => raise(undefined) }),
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

test.each(['zone.js/node', './replaced-promise.ts'])(
  'with %s loaded, the gate is still waited for',
  async first => {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [...process.execArgv, '--unhandled-rejections=strict', '--import', first, 'forged-token.ts'],
      { cwd: import.meta.dirname },
    )
    expect(JSON.parse(stdout)).toEqual({ forged: [401, 401, 401, 401], good: 200 })
  },
)
