import { expect, test } from 'vitest'
import { isLinearizable, type Kind, type Operation, type Outcome } from '../src/history.ts'

const operation = (
  calledAt: number,
  answeredAt: number,
  kind: Kind,
  outcome: Outcome,
  written?: string,
): Operation => ({ id: 1n, kind, calledAt, answeredAt, outcome, ...(written !== undefined && { written }) })
const done: Outcome = { is: 'done' }
const unknown: Outcome = { is: 'unknown' }
const sees = (seen: string): Outcome => ({ is: 'done', seen })

test('operations one after the other have that order and no other', () => {
  const write = operation(0, 1, 'create', done, 'a')
  expect(isLinearizable([write, operation(2, 3, 'read', sees('a'))], undefined)).toBe(true)
  expect(isLinearizable([write, operation(2, 3, 'read', { is: 'absent' })], undefined)).toBe(false)
  expect(isLinearizable([write, operation(2, 3, 'create', done, 'b')], undefined)).toBe(false)
  expect(isLinearizable([write, operation(2, 3, 'create', { is: 'taken' }, 'b')], undefined)).toBe(true)
  expect(isLinearizable([operation(0, 1, 'create', done, 'b')], 'a')).toBe(false)
})

test('operations at the same time can have either order, but one', () => {
  const first = operation(0, 10, 'replace', done, 'a')
  const second = operation(1, 9, 'replace', done, 'b')
  const read = (at: number, value: string) => operation(at, at + 1, 'read', sees(value))
  expect(isLinearizable([first, second, read(11, 'a')], undefined)).toBe(true)
  expect(isLinearizable([first, second, read(11, 'b')], undefined)).toBe(true)
  expect(isLinearizable([first, second, read(11, 'b'), read(13, 'a')], undefined)).toBe(false)
  expect(isLinearizable([first, second, read(2, 'b'), read(4, 'a'), read(11, 'b')], undefined)).toBe(false)
})

test('what had no answer was done at some time since, or never', () => {
  const cut = operation(5, 6, 'replace', unknown, 'b')
  const read = (at: number, value: string) => operation(at, at + 1, 'read', sees(value))
  expect(isLinearizable([cut, read(7, 'a')], 'a')).toBe(true)
  expect(isLinearizable([cut, read(7, 'b')], 'a')).toBe(true)
  expect(isLinearizable([cut, read(7, 'a'), read(9, 'b')], 'a')).toBe(true)
  expect(isLinearizable([cut, read(7, 'b'), read(9, 'a')], 'a')).toBe(false)
  expect(isLinearizable([cut, read(3, 'b')], 'a')).toBe(false)
  expect(isLinearizable([operation(0, 1, 'remove', unknown), read(2, 'c')], 'a')).toBe(false)
})

test('what was refused was not done', () => {
  const refused = operation(0, 1, 'replace', { is: 'refused' }, 'b')
  expect(isLinearizable([refused, operation(2, 3, 'read', sees('b'))], 'a')).toBe(false)
  expect(isLinearizable([refused, operation(2, 3, 'read', sees('a'))], 'a')).toBe(true)
})
