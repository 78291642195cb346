import { Writable } from 'node:stream'
import { stripVTControlCharacters } from 'node:util'
import { printable } from '@plant-store/engine'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { table } from '../src/output.ts'
import { describeProgress, showProgress } from '../src/progress.ts'
import { counted, duration, listed, minute, rate } from '../src/words.ts'

test.each([
  [0, '0 plants'],
  [1, '1 plant'],
  [2, '2 plants'],
  [999, '999 plants'],
  [1_000, '1,000 plants'],
  [1_234_567, '1,234,567 plants'],
])('the count %d is "%s"', (count, words) => {
  expect(counted(count, 'plant')).toBe(words)
})

test.each([
  { words: [], phrase: '' },
  { words: ['a'], phrase: 'a' },
  { words: ['a', 'b'], phrase: 'a and b' },
  { words: ['a', 'b', 'c'], phrase: 'a, b and c' },
  { words: ['3 plants', '20,000 tokens'], phrase: '3 plants and 20,000 tokens' },
])('the phrase of $words is "$phrase"', ({ words, phrase }) => {
  expect(listed(words)).toBe(phrase)
})

test.each([
  [0.4, '0s'],
  [59.4, '59s'],
  [59.6, '1min 0s'],
  [3_599.4, '59min 59s'],
  [3_599.6, '1h 0min'],
  [7_500, '2h 5min'],
])('the duration of %d seconds is "%s"', (seconds, words) => {
  expect(duration(seconds)).toBe(words)
})

test.each([
  { count: 3, seconds: 2, words: '2/s' },
  { count: 2_000, seconds: 0.5, words: '4,000/s' },
  { count: 1, seconds: 0, words: '1,000/s' },
])('the rate of $count in $seconds seconds is "$words"', ({ count, seconds, words }) => {
  expect(rate(count, seconds)).toBe(words)
})

test('a table has its cells below each other, and nothing after the last', () => {
  const head = ['ID', 'STATE']
  const rows = [['long one', '-'], ['x', ''], ['y']]

  expect(table(head, rows, 'none')).toBe('ID        STATE\nlong one  -\nx\ny')
  expect(table(head, [], 'none')).toBe('none')
})

test('a time is shown up to its minute, and a missing one as a word', () => {
  expect(minute(new Date('2026-01-02T03:04:59.999Z'))).toBe('2026-01-02 03:04Z')
  expect(minute(null)).toBe('-')
  expect(minute(undefined, 'never')).toBe('never')
})

test('progress says how much, how fast and how long', () => {
  const done = { count: 3_000, value: 25, total: 100, seconds: 2 }
  for (const [changed, words] of [
    [{}, ' 25%  3,000 plants  1,500/s  6s left'],
    [{ count: 1, value: 0 }, '  0%  1 plant  1/s  ? left'],
    [{ value: 99.9 }, ' 99%  3,000 plants  1,500/s  0s left'],
    [{ value: 100 }, '100%  3,000 plants  1,500/s  0s left'],
    [{ total: 0 }, '3,000 plants  1,500/s  2s'],
  ] as const) {
    const description = describeProgress('plant', { ...done, ...changed })
    expect(description, JSON.stringify(changed)).toBe(words)
  }
})

test('what a terminal would obey is escaped, in tables and results', () => {
  expect(printable('a\u001b[2J\u009b2J\u202egpj\u2028 ünï 🌱')).toBe(
    'a\\u001b[2J\\u009b2J\\u202egpj\\u2028 ünï 🌱',
  )
  expect(table(['NAME'], [['a\nb\u202e']], '')).toBe('NAME\na\\u000ab\\u202e')
})

describe('progress', () => {
  const [hidesCursor, showsCursor, clearsLine] = [
    '\u001B[?25l',
    '\u001B[?25h',
    '\u001B[2K',
  ]

  beforeEach(() => void vi.stubEnv('TERM', 'xterm'))
  afterEach(() => {
    vi.restoreAllMocks()
    vi.unstubAllEnvs()
  })

  /** A terminal, and what it was sent since it was last looked at. */
  function terminal(isTTY: boolean) {
    let text = ''
    const write = (chunk: Buffer, _: string, done: () => void) => {
      text += chunk
      done()
    }
    const stream = Object.assign(new Writable({ write }), { isTTY, columns: 120 })
    vi.spyOn(process, 'stderr', 'get').mockReturnValue(stream as never)
    return () => {
      const shown = text
      text = ''
      return shown
    }
  }

  test.each([
    { where: 'a pipe', isTTY: false, isShown: true, TERM: 'xterm' },
    { where: 'a dumb terminal', isTTY: true, isShown: true, TERM: 'dumb' },
    { where: 'a terminal beside JSON', isTTY: true, isShown: false, TERM: 'xterm' },
  ])('is not shown on $where', async ({ isTTY, isShown, TERM }) => {
    vi.stubEnv('TERM', TERM)
    const shown = terminal(isTTY)

    using progress = await showProgress('plant', isShown)
    progress.update(1, 1, 2)

    expect(shown()).toBe('')
  })

  test('is a bar with words, and the words alone if the total is unknown', async () => {
    const shown = terminal(true)
    const words = () => stripVTControlCharacters(shown())
    const signals = process.listenerCount('SIGINT')
    {
      using progress = await showProgress('plant', true)
      const [, atFirst] = shown().split(hidesCursor)
      expect(stripVTControlCharacters(atFirst ?? '')).toBe('0 plants  0/s  0s')
      progress.update(3, 1, 4)
      await expect.poll(words).toMatch(/^.*█{7,8}░{22,23} +25% {2}3 plants .* left$/)
      // More than was expected.
      progress.update(1_000, 5, 4)
      await expect.poll(words).toMatch(/█{30} +100% {2}1,000 plants .* left$/)
      progress.update(7, 7, 0)
      await expect.poll(words).toMatch(/^[^█%]*7 plants {2}[\d,]+\/s {2}\ds$/)
      // The command ends, and with it the bar.
      expect(process.listenerCount('SIGINT')).toBe(signals)
    }
    const atLast = shown()
    expect(atLast).toContain(showsCursor)
    expect(atLast.endsWith(clearsLine)).toBe(true)
  })
})
