import { parseJsonRecord } from '@plant-store/json'
import { expect, test, vi } from 'vitest'

const raw = String.raw

/**
 * Each pair is a record, and another one whose escaped name V8 takes for a name of the
 * first (github.com/nodejs/node/issues/63785). Once `JSON.parse` no longer does this, the
 * second reading can go.
 */
const pairs = [
  {
    first: raw`{"id":1,"name":"a","\\u0":"b"}`,
    second: raw`{"id":2,"name":"a","\u0074ag":"x"}`,
    value: { id: 2n, name: 'a', tag: 'x' },
  },
  {
    first: raw`{"first":1,"\\":1}`,
    second: raw`{"first":2,"\u0062":9007199254740993}`,
    value: { first: 2n, b: 2n ** 53n + 1n },
  },
  {
    first: raw`{"a":[{"b":1,"\\":1}]}`,
    second: raw`{"a":[{"b":1,"\n":2}]}`,
    value: { a: [{ b: 1, '\n': 2 }] },
  },
]

test.each(pairs)('after $first, $second is read as it is', ({ first, second, value }) => {
  parseJsonRecord(first)

  expect(parseJsonRecord(second)).toEqual(value)
})

test.each(['__proto__', raw`_\u005fproto__`])(
  'makes %s an own member and no prototype, at any depth',
  name => {
    const record = Object(parseJsonRecord(`{"${name}":{"id":7},"a":{"${name}":8}}`))

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
  const standIn = `${(0.5).toString(36)}0`
  const text = raw`{"\u0061":1,"${standIn}":2}`

  expect(parseJsonRecord(text)).toEqual({ a: 1n, [standIn]: 2n })
  expect(random).toHaveBeenCalledTimes(2)
})
