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

test('what JSON cannot say is left out, as by JSON.stringify', () => {
  const record = { id: 1n, a: () => 1, b: { toJSON() {} }, c: undefined }

  expect(writeJsonRecord(record)).toBe('{"id":1}')
})

test('the least int64 keeps its digits, and a text its quotes', () => {
  const json = writeJsonRecord({ id: int64Min, name: '"' })

  expect(json).toBe('{"id":-9223372036854775808,"name":"\\""}')
  expect(writeJsonRecord({})).toBe('{}')
})
