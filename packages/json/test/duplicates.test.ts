import { parseJsonRecord } from '@plant-store/json'
import { expect, test } from 'vitest'

test.each([
  [
    'far apart',
    `{"a":1,${Array.from({ length: 50 }, (_, n) => `"m${n}":${n}`).join(',')},"a":2}`,
  ],
  ['beyond the basic plane', '{"🌱":1,"\\ud83c\\udf31":2}'],
  ['named __proto__, below', '{"a":{"__proto__":1,"\\u005f_proto__":2}}'],
])('refuses a member that is given twice: %s', (_, text) => {
  expect(() => parseJsonRecord(text)).toThrow(SyntaxError)
  expect(() => parseJsonRecord(text)).toThrow(/Duplicate member/)
})

test('names the member and the place where it comes again', () => {
  const text = '{"name":1,"na\\u006de":2}'
  expect(() => parseJsonRecord(text)).toThrow(
    `Duplicate member "name" at position ${text.indexOf('"na\\')}`,
  )
})

test('quotes no more than the beginning of a long name', () => {
  const name = 'x'.repeat(10_000)
  expect(() => parseJsonRecord(`{"${name}":1,"${name}":2}`)).toThrow(
    `Duplicate member "${'x'.repeat(100)}…" at position 10006`,
  )
})
