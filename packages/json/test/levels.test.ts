import { parseJsonRecord } from '@plant-store/json'
import { expect, test } from 'vitest'

const levelsMax = 200_000
const arrays = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
const objects = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`

test.each([
  ['arrays', arrays],
  ['objects', objects],
])('takes 200,000 levels of %s, and no more', (_, of) => {
  expect(() => parseJsonRecord(of(levelsMax))).not.toThrow()
  expect(() => parseJsonRecord(of(levelsMax + 1))).toThrow(
    /^More than 200000 levels .* at position \d+$/,
  )
})

test('refuses what never ends before V8 takes 64 bytes a level for it', () => {
  expect(() => parseJsonRecord('['.repeat(2 ** 20))).toThrow(
    /^More than 200000 levels .* at position 200000$/,
  )
})

test('counts no bracket in a string, and not twice what is closed', () => {
  expect(() => parseJsonRecord(`{"a":"${'['.repeat(levelsMax + 1)}"}`)).not.toThrow()
  expect(() =>
    parseJsonRecord(`[${arrays(levelsMax - 1)},${arrays(levelsMax - 1)}]`),
  ).not.toThrow()
})

test('leaves a string that never ends to V8', () => {
  expect(() => parseJsonRecord(`{"a":"${'['.repeat(levelsMax)}`)).toThrow(
    /Unterminated string/,
  )
})
