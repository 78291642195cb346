import { expect, test } from 'vitest'
import { median, medianRatio } from '../src/statistics.ts'

test('a median is the middle, or between the two in the middle', () => {
  expect(median([3, 1, 10])).toBe(3)
  expect(median([4, 1, 3, 10])).toBe(3.5)
  expect(() => median([])).toThrow()
})

test('a ratio is of rounds that ran beside each other', () => {
  expect(medianRatio([100, 10, 60], [50, 5, 20])).toBe(2)
})
