import { printable } from '@plant-store/api/printable'
import { expect, onTestFinished, test, vi } from 'vitest'
import { fromNow } from '../src/commands/tokens.ts'
import { fileFailure } from '../src/failure.ts'
import { counted, describeProgress, duration, minute, rate, table } from '../src/terminal.ts'

test('counts, durations and rates are in words', () => {
  expect([0, 1, 2, 999, 1_000, 12_345, 1_234_567].map(count => counted(count, 'plant'))).toEqual([
    '0 plants',
    '1 plant',
    '2 plants',
    '999 plants',
    '1,000 plants',
    '12,345 plants',
    '1,234,567 plants',
  ])
  expect([0, 0.4, 59.4, 59.6, 60, 3_599.4, 3_599.6, 7_500].map(duration)).toEqual([
    '0s',
    '0s',
    '59s',
    '1min 0s',
    '1min 0s',
    '59min 59s',
    '1h 0min',
    '2h 5min',
  ])
  expect([rate(3, 2), rate(2_000, 0.5), rate(1, 0)]).toEqual(['2/s', '4,000/s', '1,000/s'])
})

test.each([
  ['EACCES', 'permission denied'],
  ['EISDIR', 'it is a folder'],
  ['ENOENT', 'no such file or folder'],
  ['ENOSPC', 'the disk is full'],
  ['ENOTDIR', 'a part of the path is not a folder'],
  ['EROFS', 'the file system is read-only'],
  ['EIO', 'EIO: other words'],
])('%s is told as a reason', (code, reason) => {
  const cause = Object.assign(new Error('EIO: other words'), { code })
  expect(fileFailure('a file', cause)).toMatchObject({ message: `a file: ${reason}`, exitCode: 1 })
})

test('a table has its cells below each other, and nothing after the last', () => {
  const head = ['ID', 'STATE']
  expect(table(head, [['long one', '-'], ['x', ''], ['y']], 'none')).toBe(
    'ID        STATE\nlong one  -\nx\ny',
  )
  expect(table(head, [], 'none')).toBe('none')
  expect(minute(new Date('2026-01-02T03:04:59.999Z'))).toBe('2026-01-02 03:04Z')
  expect([minute(null), minute(undefined, 'never')]).toEqual(['-', 'never'])
})

test('a time is a number with its unit, and nothing else', () => {
  vi.useFakeTimers({ toFake: ['Date'], now: 0 })
  onTestFinished(() => void vi.useRealTimers())
  expect(['1s', '2min', '3h', '10d', '1w', '999999s'].map(text => fromNow(text).getTime())).toEqual([
    ...[1_000, 120_000, 10_800_000, 864_000_000, 604_800_000, 999_999_000],
  ])
  for (const text of ['', '1', 's', '0s', '01s', '1m', '1000000s', '1.5h', 'x1s', '1sx', '-1s'])
    expect(() => fromNow(text), text).toThrow('must be a time from now')
})

test('progress says how much, how fast, and how long it will take or has taken', () => {
  const done = { count: 3_000, value: 25, total: 100, seconds: 2 }
  for (const [changed, words] of [
    [{}, ' 25%  3,000 plants  1,500/s  6s left'],
    [{ count: 1, value: 0 }, '  0%  1 plant  1/s  ? left'],
    [{ value: 99.9 }, ' 99%  3,000 plants  1,500/s  0s left'],
    [{ value: 100 }, '100%  3,000 plants  1,500/s  0s left'],
    [{ total: 0 }, '3,000 plants  1,500/s  2s'],
  ] as const)
    expect(describeProgress('plant', { ...done, ...changed })).toBe(words)
})

test('what a terminal would obey is escaped, in tables and results', () => {
  expect(printable('a\u001b[2J\u009b2J\u202egpj\u2028 ünï 🌱')).toBe(
    'a\\u001b[2J\\u009b2J\\u202egpj\\u2028 ünï 🌱',
  )
  expect(table(['NAME'], [['a\nb\u202e']], '')).toBe('NAME\na\\u000ab\\u202e')
})
