import { expect, test } from 'vitest'
import { judge } from '../src/judge.ts'

const mutant = (change: string, status: string) => ({ source: 'src/a.ts', line: 1, change, status })
const mutants = [
  mutant('a', 'Killed'),
  mutant('b', 'Killed'),
  mutant('c', 'Timeout'),
  mutant('d', 'Survived'),
  mutant('e', 'NoCoverage'),
  mutant('f', 'RuntimeError'),
]

test('the score is of the mutants that could be tried', () => {
  const { summary, unnoticed } = judge(mutants, {})
  expect(summary).toBe(
    '60.0 %: 2 killed, 1 timed out, 1 survived, 1 without a test, 0 equivalent, 1 not judged',
  )
  expect(unnoticed.map(({ change }) => change)).toEqual(['d', 'e'])
})

test('equivalent mutants do not count', () => {
  const { summary, unnoticed, useless } = judge(mutants, { 'src/a.ts': { d: 'the same' } })
  expect(summary).toBe(
    '75.0 %: 2 killed, 1 timed out, 0 survived, 1 without a test, 1 equivalent, 1 not judged',
  )
  expect(unnoticed.map(({ change }) => change)).toEqual(['e'])
  expect(useless).toEqual([])
})

test('what is named as equivalent and is noticed, or is not in the code, is reported; what was not tried is not', () => {
  const { useless } = judge(mutants, {
    'src/a.ts': { a: 'noticed', z: 'gone' },
    'src/b.ts': { a: 'not tried' },
  })
  expect(useless).toEqual(['src/a.ts: a', 'src/a.ts: z'])
})
