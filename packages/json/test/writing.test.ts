import { parseJsonRecord, writeJsonRecord } from '@plant-store/json'
import fc from 'fast-check'
import { expect, test } from 'vitest'

const int64Min = -(2n ** 63n)
const int64 = fc.bigInt({ min: int64Min, max: -int64Min - 1n })
const text = fc.string({ unit: 'binary' })
const value = fc.oneof(int64, text, fc.boolean(), fc.constant(null))

test('what is written is read back, every digit and every text', () => {
  const property = fc.property(fc.dictionary(text, value), record => {
    const json = writeJsonRecord(record)

    expect(parseJsonRecord(json)).toEqual({ ...record })
  })
  fc.assert(property)
})

test.each([
  { why: 'a function', record: { id: 1n, a: () => 1 } },
  { why: 'a symbol', record: { id: 1n, a: Symbol('s') } },
  { why: 'a method toJSON', record: { id: 1n, toJSON: () => ({}) } },
  { why: 'a value that JSON cannot say', record: { id: 1n, a: { toJSON() {} } } },
])('$why is left out, as by JSON.stringify', ({ record }) => {
  expect(writeJsonRecord(record)).toBe('{"id":1}')
})

test('the least int64 keeps its digits, and undefined is left out', () => {
  const json = writeJsonRecord({ id: int64Min, name: '"', tag: undefined })

  expect(json).toBe('{"id":-9223372036854775808,"name":"\\""}')
  expect(writeJsonRecord({})).toBe('{}')
})
