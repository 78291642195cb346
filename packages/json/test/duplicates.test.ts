import { parseJsonRecord } from '@plant-store/json'
import { expect, test } from 'vitest'
import { readJson } from './reference-reader.ts'

test.each([
  ['in the record', '{"a":1,"a":1}'],
  ['far apart', `{"a":1,${Array.from({ length: 50 }, (_, n) => `"m${n}":${n}`).join(',')},"a":2}`],
  ['in an object of the record', '{"a":{"b":1,"c":2,"b":3}}'],
  ['in an object within arrays', '{"a":[[{"b":1},{"b":1,"b":2}]]}'],
  ['in an object of an array at the top', '[{"b":1,"b":2}]'],
  ['after an object that has the same name', '{"a":{"a":1},"a":2}'],
  ['once escaped', '{"id":1,"\\u0069d":2}'],
  ['both escaped, differently', '{"\\n":1,"\\u000a":2}'],
  ['beyond the basic plane', '{"🌱":1,"\\ud83c\\udf31":2}'],
  ['named by an escaped quote', '{"\\"":1,"\\u0022":2}'],
  ['named __proto__', '{"__proto__":1,"__proto__":2}'],
  ['named __proto__, with objects', '{"__proto__":{},"__proto__":{}}'],
  ['named __proto__, below', '{"a":{"__proto__":1,"\\u005f_proto__":2}}'],
  ['with an empty name', '{"":1,"":2}'],
  ['with white space around', '{ "a" : 1 ,\n\t"a"\r: 2 }'],
])('refuses a member that is given twice: %s', (_, text) => {
  expect(() => parseJsonRecord(text)).toThrow(SyntaxError)
  expect(() => parseJsonRecord(text)).toThrow(/Duplicate member/)
})

test('names the member and the place where it comes again', () => {
  const text = '{"name":1,"na\\u006de":2}'
  expect(() => parseJsonRecord(text)).toThrow(`Duplicate member "name" at position ${text.indexOf('"na\\')}`)
})

test.each([
  ['different names', '{"a":1,"b":2,"A":3,"á":4,"a\u0301":5}'],
  ['the same name in different objects', '{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}'],
  ['the same text as name and as value', '{"a":"a","b":"a"}'],
  ['the same text twice in an array', '["a","a"]'],
  ['what looks like a member inside a string', '{"a":"\\",\\"a\\":1,","b":"{\\"b\\":1}"}'],
  ['names that end in backslashes', '{"\\\\":1,"\\\\\\\\":2}'],
  ['names that every object inherits', '{"constructor":1,"toString":2,"hasOwnProperty":3}'],
])('accepts %s', (_, text) => {
  expect(parseJsonRecord(text)).toEqual(readJson(text))
})

test('makes a member named __proto__ an own one and no prototype', () => {
  for (const text of ['{"__proto__":5,"id":1}', '{"__proto__":{"id":5},"name":"a"}']) {
    const record = parseJsonRecord(text) as object
    expect(Object.getPrototypeOf(record)).toBe(Object.prototype)
    expect(Object.keys(record)[0]).toBe('__proto__')
  }
  expect(Object.getOwnPropertyDescriptor(parseJsonRecord('{"__proto__":5}'), '__proto__')?.value).toBe(5n)
  expect(({} as { id?: unknown }).id).toBeUndefined()
})

test('quotes no more than the beginning of a long name', () => {
  const name = 'x'.repeat(10_000)
  expect(() => parseJsonRecord(`{"${name}":1,"${name}":2}`)).toThrow(
    `Duplicate member "${'x'.repeat(100)}…" at position 10006`,
  )
})
