import { expect, test } from 'vitest'
import { statements as postgres } from '../src/postgres/statements.ts'
import { valuesOf } from '../src/repositories/statements.ts'
import { statements as sqlite } from '../src/sqlite/engine.ts'

test.each([
  ['SQLite', sqlite],
  ['PostgreSQL', postgres],
])('%s: the columns of a plant may have any name, as each is quoted', (_, { read, change }) => {
  const ofPlants = Object.entries({ ...read, ...change }).filter(
    ([, { sql }]) => /\b(plants|outbox)\b/.test(sql) && /\bname\b/.test(sql),
  )
  expect(ofPlants.length).toBeGreaterThan(6)
  for (const [, { sql }] of ofPlants) expect(sql).not.toMatch(/(?<!")\bname\b/)
})

test('values are in the order of the placeholders, also those of a parameter that has several', () => {
  const { sql, parameters } = sqlite.change.markTokenUsed
  expect(sql.match(/\?/g)).toHaveLength(parameters.length)
  expect(valuesOf(sqlite.change.markTokenUsed, { hash: 'a', usedAt: 1n })).toEqual([1n, 'a', 1n])
  expect(valuesOf(postgres.change.removePlantIf, { expected: 2n, id: 1n })).toEqual([1n, 2n])
  expect(valuesOf(sqlite.change.awaitAdding, {})).toEqual([])
})
