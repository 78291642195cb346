import { readdirSync, readFileSync } from 'node:fs'
import {
  idProblem,
  int64Max,
  int64Min,
  int64Problem,
  isInt64,
  pageLimitProblem,
  parsePlantId,
  textBytes,
  textProblem,
} from '@plant-store/domain'
import { describe, expect, test } from 'vitest'

describe('an integer of 64 bits', () => {
  test('has these bounds', () => {
    expect(int64Min).toBe(-9223372036854775808n)
    expect(int64Max).toBe(9223372036854775807n)
    expect(int64Problem).toBe(
      'must be an integer from -9223372036854775808 to 9223372036854775807',
    )
  })

  test.each([0n, -1n, 2n ** 53n + 1n, int64Max, int64Min])('may be %s', value => {
    expect(isInt64(value)).toBe(true)
    expect(idProblem(value)).toBeUndefined()
    expect(parsePlantId(value)).toBe(value)
  })

  test.each([
    int64Max + 1n,
    int64Min - 1n,
    1,
    Number.NaN,
    '1',
    true,
    null,
    [1n],
    Object(1n),
  ])('is not %s', value => {
    expect(isInt64(value)).toBe(false)
    expect(idProblem(value)).toBe(int64Problem)

    const faults = [{ field: 'id', problem: int64Problem }]
    const refusal = { code: 'invalid-id', message: `id ${int64Problem}`, faults }
    expect(() => parsePlantId(value)).toThrow(expect.objectContaining(refusal))
  })
})

test.each([
  ['', undefined],
  [' \u0001🌱\uffff ', undefined],
  [undefined, 'is required'],
  [null, 'must be a string'],
  [1n, 'must be a string'],
  [Object('text'), 'must be a string'],
  ['a\ud800', 'must be Unicode text without lone surrogates'],
  ['\udc00\ud800', 'must be Unicode text without lone surrogates'],
  ['a\0', 'must not contain U+0000'],
])('the text %o has the problem: %s', (value, problem) => {
  expect(textProblem(value)).toBe(problem)
})

test.each([1, 2, 100, 999, 1000])('a page may have the limit %s', limit => {
  expect(pageLimitProblem(limit)).toBeUndefined()
})

test.each([
  0,
  -1,
  1001,
  1.5,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  1n,
  100n,
  '1',
  true,
  null,
  undefined,
])('no page has the limit %s', limit => {
  expect(pageLimitProblem(limit)).toBe('must be an integer from 1 to 1000')
})

test('the sources have no power of a bigint, which Babel makes a Math.pow', () => {
  const folder = new URL('../src/', import.meta.url)
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  const sources = names.filter(name => name.endsWith('.ts'))

  const withPower = sources.filter(name =>
    readFileSync(new URL(name, folder), 'utf8').includes(' ** '),
  )

  expect(sources).toContain('values.ts')
  expect(withPower).toEqual([])
})

const edges = [
  '\x7f',
  '\x80',
  '\u07ff',
  '\u0800',
  '\ud7ff',
  '\ue000',
  '\uffff',
  '\u{10000}',
  '\u{10ffff}',
]

test.each(['', 'a', 'é', ...edges, '🌱', 'aé日🌱'])(
  'the length of texts is that in UTF-8: %j',
  text => {
    const bytes = Buffer.byteLength(text)

    expect(textBytes({ id: 1n, name: text })).toBe(bytes)
    expect(textBytes({ id: 1n, name: text, size: 5, tag: text })).toBe(2 * bytes)
  },
)
