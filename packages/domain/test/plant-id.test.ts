import { DomainError, parsePlantId, plantIdMax, plantIdMin } from '@plant-store/domain'
import { expect, test } from 'vitest'

test('an id is a signed 64-bit integer', () => {
  expect(plantIdMin).toBe(-9223372036854775808n)
  expect(plantIdMax).toBe(9223372036854775807n)
})

test.each([0n, 1n, -1n, 2n ** 53n + 1n, plantIdMax, plantIdMin])('accepts %s unchanged', id => {
  expect(parsePlantId(id)).toBe(id)
})

test.each([plantIdMax + 1n, plantIdMin - 1n, 2n ** 64n, 10n ** 30n])(
  'refuses %s, which no int64 holds',
  id => {
    expect(() => parsePlantId(id)).toThrow(DomainError)
  },
)

test.each([1, 1.5, Number.NaN, '1', '', true, null, undefined, [1n], {}, Object(1n)])(
  'refuses %s, which is no bigint, without converting it',
  value => {
    const problem = `must be an integer from ${plantIdMin} to ${plantIdMax}`
    const refusal = { code: 'invalid-plant-id', message: `id ${problem}`, faults: [{ field: 'id', problem }] }
    expect(() => parsePlantId(value)).toThrow(expect.objectContaining(refusal))
  },
)
