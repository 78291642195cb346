import { expect, test } from 'vitest'
import { median, medianRatio, percentile } from '../src/statistics.ts'

test('a median is the middle, or between the two in the middle', () => {
  expect(median([3, 1, 10])).toBe(3)
  expect(median([4, 1, 3, 10])).toBe(3.5)
  expect(() => median([])).toThrow()
})

test('a percentile is a value that was there', () => {
  const values = Array.from({ length: 200 }, (_, index) => 200 - index)
  expect(percentile(values, 0.5)).toBe(100)
  expect(percentile(values, 0.99)).toBe(198)
  expect(percentile([7], 0.99)).toBe(7)
})

test('a ratio is of rounds that ran beside each other', () => {
  expect(medianRatio([100, 10, 60], [50, 5, 20])).toBe(2)
})
