import { parseJsonRecord } from '@plant-store/json'
import { expect, onTestFinished, test, vi } from 'vitest'

const raw = String.raw

/**
 * Each pair is a record, and another one whose escaped name V8 takes for a name of the
 * first (github.com/nodejs/node/issues/63785). Once `JSON.parse` no longer does this, the
 * second reading can go.
 */
const pairs = [
  [
    raw`{"id":1,"name":"a","\\u0":"b"}`,
    raw`{"id":2,"name":"a","\u0074ag":"x"}`,
    { id: 2n, name: 'a', tag: 'x' },
  ],
  [raw`{"id":1,"n\\u0":"b"}`, raw`{"id":2,"n\u0061me":"a"}`, { id: 2n, name: 'a' }],
  [
    raw`{"first":1,"\\":1}`,
    raw`{"first":2,"\u0062":9007199254740993}`,
    { first: 2n, b: 2n ** 53n + 1n },
  ],
  [raw`{"a":[{"b":1,"\\":1}]}`, raw`{"a":[{"b":1,"\n":2}]}`, { a: [{ b: 1, '\n': 2 }] }],
] as const

test.each(pairs)('after %s reads %s as it is', (before, text, expected) => {
  parseJsonRecord(before)
  expect(parseJsonRecord(text)).toEqual(expected)
})

test.each(['__proto__', raw`_\u005fproto__`])(
  'makes %s an own member and no prototype, at any depth',
  name => {
    const record = parseJsonRecord(`{"${name}":{"id":7},"a":{"${name}":8}}`) as {
      a: object
      id?: unknown
    }
    expect(Object.getPrototypeOf(record)).toBe(Object.prototype)
    expect(record.id).toBeUndefined()
    expect(Object.getOwnPropertyDescriptor(record, '__proto__')).toEqual({
      value: { id: 7 },
      writable: true,
      enumerable: true,
      configurable: true,
    })
    expect(Object.getOwnPropertyDescriptor(record.a, '__proto__')?.value).toBe(8)
  },
)

test('a name that looks like a stand-in stays what it is', () => {
  const random = vi.spyOn(Math, 'random').mockReturnValueOnce(0.5)
  onTestFinished(() => random.mockRestore())
  const standIn = `${(0.5).toString(36)}0`
  expect(parseJsonRecord(raw`{"\u0061":1,"${standIn}":2}`)).toEqual({
    a: 1n,
    [standIn]: 2n,
  })
  expect(random).toHaveBeenCalledTimes(2)
})
