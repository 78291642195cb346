import { parseJsonRecord, writeJsonRecord } from '@plant-store/json'
import fc from 'fast-check'
import { expect, test } from 'vitest'

const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
const text = fc.string({ unit: 'binary' })

test('what is written is read back, every digit and every text', () => {
  const record = fc.dictionary(
    text,
    fc.oneof(int64, text, fc.boolean(), fc.constant(null)),
  )
  fc.assert(
    fc.property(record, each => {
      expect(parseJsonRecord(writeJsonRecord(each))).toEqual({ ...each })
    }),
  )
})

test('the ends of int64 keep their digits, and undefined is left out', () => {
  expect(writeJsonRecord({ id: -(2n ** 63n), name: '"', tag: undefined })).toBe(
    '{"id":-9223372036854775808,"name":"\\""}',
  )
  expect(writeJsonRecord({})).toBe('{}')
})
