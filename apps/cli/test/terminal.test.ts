import { expect, test } from 'vitest'
import { table } from '../src/output.ts'
import { describeProgress } from '../src/progress.ts'
import { counted, duration, listed, minute, rate } from '../src/words.ts'

test.each([
  [counted(0, 'plant'), '0 plants'],
  [counted(1, 'plant'), '1 plant'],
  [counted(999, 'plant'), '999 plants'],
  [counted(1_234_567, 'plant'), '1,234,567 plants'],
  [listed([]), ''],
  [listed(['a']), 'a'],
  [listed(['a', 'b']), 'a and b'],
  [listed(['a', 'b', 'c']), 'a, b and c'],
  [duration(0.4), '0s'],
  [duration(59.4), '59s'],
  [duration(59.6), '1min 0s'],
  [duration(3_599.4), '59min 59s'],
  [duration(3_599.6), '1h 0min'],
  [duration(7_500), '2h 5min'],
  [rate(3, 2), '2/s'],
  [rate(2_000, 0.5), '4,000/s'],
  [rate(1, 0), '1,000/s'],
  [minute(new Date('2026-01-02T03:04:59.999Z')), '2026-01-02 03:04Z'],
  [minute(null), '-'],
  [minute(undefined, 'never'), 'never'],
])('words for people are such as %j', (words, expected) => {
  expect(words).toBe(expected)
})

test('a table has its cells below each other, and nothing after the last', () => {
  const rows = [
    { ID: 'long one', STATE: '-' },
    { ID: 'x', STATE: '' },
    { ID: 'y\n\u202e', STATE: '' },
  ]

  expect(table(rows, 'none')).toBe(
    'ID             STATE\nlong one       -\nx\ny\\u000a\\u202e',
  )
  expect(table([], 'none')).toBe('none')
})

// It takes tenths of a second, and 20 s if each cell looks at all others of its column.
test('a table has as many rows as --limit allows in a moment', { timeout: 5_000 }, () => {
  const row = { PLANT: '1', EVENT: 'added', SINCE: '', FAILED: '3', NEXT: '', REASON: '' }
  const rows = Array.from({ length: 9_999 }, () => row)

  const lines = table(rows, 'none').split('\n')

  expect(lines).toHaveLength(10_000)
})

test.each([
  [{}, ' 25%  3,000 plants  1,500/s  6s left'],
  [{ count: 1, value: 0 }, '  0%  1 plant  1/s  ? left'],
  [{ value: 99.9 }, ' 99%  3,000 plants  1,500/s  0s left'],
  // More than was expected.
  [{ value: 101 }, '100%  3,000 plants  1,500/s  0s left'],
  [{ total: 0 }, '3,000 plants  1,500/s  2s'],
])('progress with %j says how much, how fast and how long', (changed, words) => {
  const done = { count: 3_000, value: 25, total: 100, seconds: 2, ...changed }

  expect(describeProgress('plant', done)).toBe(words)
})
