import { parseJsonRecord, writeJsonRecord } from '@plant-store/json'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { character } from './arbitraries.ts'

const int64Min = -(2n ** 63n)
const int64 = fc.bigInt({ min: int64Min, max: -int64Min - 1n })
const text = fc.string({ unit: character })
const value = fc.oneof(int64, text, fc.boolean(), fc.constant(null))

test('a record is read back as written, every digit and text', () => {
  const property = fc.property(fc.dictionary(text, value), record => {
    const json = writeJsonRecord(record)

    expect(parseJsonRecord(json)).toEqual({ ...record })
  })
  fc.assert(property)
})

test('a record leaves out what JSON cannot say, as JSON.stringify does', () => {
  const own = { id: 1n, a: () => 1, b: { toJSON() {} }, c: undefined }
  const record = Object.assign(Object.create({ inherited: 1 }), own)

  expect(writeJsonRecord(record)).toBe('{"id":1}')
  expect(() => writeJsonRecord([record])).toThrow('an array is no record')
})

test('the least int64 keeps its digits, and a text its quotes', () => {
  const json = writeJsonRecord({ id: int64Min, name: '"' })

  expect(json).toBe('{"id":-9223372036854775808,"name":"\\""}')
  expect(writeJsonRecord({})).toBe('{}')
})
