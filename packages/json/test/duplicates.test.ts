import { parseJsonRecord } from '@plant-store/json'
import { expect, test } from 'vitest'
import { readJson } from './reference-reader.ts'

test.each([
  [
    'far apart',
    `{"a":1,${Array.from({ length: 50 }, (_, n) => `"m${n}":${n}`).join(',')},"a":2}`,
  ],
  ['in an object within arrays', '{"a":[[{"b":1},{"b":1,"b":2}]]}'],
  ['after an object that has the same name', '{"a":{"a":1},"a":2}'],
  ['both escaped, differently', '{"\\n":1,"\\u000a":2}'],
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

test.each([
  ['different names', '{"a":1,"b":2,"A":3,"á":4,"a\u0301":5}'],
  [
    'what looks like a member inside a string',
    '{"a":"\\",\\"a\\":1,","b":"{\\"b\\":1}"}',
  ],
  [
    'names that every object inherits',
    '{"constructor":1,"toString":2,"hasOwnProperty":3}',
  ],
])('accepts %s', (_, text) => {
  expect(parseJsonRecord(text)).toEqual(readJson(text))
})

test('quotes no more than the beginning of a long name', () => {
  const name = 'x'.repeat(10_000)
  expect(() => parseJsonRecord(`{"${name}":1,"${name}":2}`)).toThrow(
    `Duplicate member "${'x'.repeat(100)}…" at position 10006`,
  )
})
