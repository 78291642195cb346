import { parseJsonRecord } from '@plant-store/json'
import { expect, test } from 'vitest'

const levelsMax = 200_000
const arrays = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
const objects = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`

test.each([
  ['arrays', arrays],
  ['objects', objects],
])('takes 200,000 levels of %s, and no more', (_, make) => {
  const deepest = make(levelsMax)
  expect(() => parseJsonRecord(deepest)).not.toThrow()

  const tooDeep = make(levelsMax + 1)
  const message = /^More than 200000 levels .* at position \d+$/
  expect(() => parseJsonRecord(tooDeep)).toThrow(message)
})

test('refuses what never ends before V8 takes 64 bytes a level for it', () => {
  const endless = '['.repeat(2 ** 20)

  const message = /^More than 200000 levels .* at position 200000$/
  expect(() => parseJsonRecord(endless)).toThrow(message)
})

test('counts no bracket in a string', () => {
  const text = '['.repeat(levelsMax + 1)

  expect(() => parseJsonRecord(`{"a":"${text}"}`)).not.toThrow()
})
