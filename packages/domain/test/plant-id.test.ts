import { DomainError, int64Max, int64Min, parsePlantId } from '@plant-store/domain'
import { expect, test } from 'vitest'

test.each([0n, 1n, -1n, 2n ** 53n + 1n, int64Max, int64Min])('accepts %s unchanged', id => {
  expect(parsePlantId(id)).toBe(id)
})

test.each([int64Max + 1n, int64Min - 1n, 2n ** 64n, 10n ** 30n])('refuses %s, which no int64 holds', id => {
  expect(() => parsePlantId(id)).toThrow(DomainError)
})

test.each([1, 1.5, Number.NaN, '1', '', true, null, undefined, [1n], {}, Object(1n)])(
  'refuses %s, which is no bigint, without converting it',
  value => {
    const problem = `must be an integer from ${int64Min} to ${int64Max}`
    const refusal = { code: 'invalid-id', message: `id ${problem}`, faults: [{ field: 'id', problem }] }
    expect(() => parsePlantId(value)).toThrow(expect.objectContaining(refusal))
  },
)
