import { expect, test } from 'vitest'
import { History, isLinearizable, type Kind, type Operation, type Outcome } from '../src/history.ts'

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

test('a change of an expected state is made in that state, and in no other', () => {
  const swap = (at: number, outcome: Outcome, expected: string | undefined, written = 'new') => ({
    ...operation(at, at + 1, 'replaceIf', outcome, written),
    expected,
  })
  const differs: Outcome = { is: 'differs' }
  const read = (at: number, value: string) => operation(at, at + 1, 'read', sees(value))
  expect(isLinearizable([swap(0, done, 'a'), read(2, 'new')], 'a')).toBe(true)
  expect(isLinearizable([swap(0, done, 'a')], 'b')).toBe(false)
  expect(isLinearizable([swap(0, differs, 'a'), read(2, 'a')], 'a')).toBe(false)
  expect(isLinearizable([swap(0, differs, 'a'), read(2, 'b')], 'b')).toBe(true)
  expect(isLinearizable([swap(0, done, undefined), read(2, 'new')], undefined)).toBe(true)
  expect(isLinearizable([swap(0, differs, undefined)], undefined)).toBe(false)
  expect(isLinearizable([swap(0, unknown, 'a'), read(2, 'new')], 'b')).toBe(false)
  const both = [swap(0, done, 'a', 'x'), { ...swap(0, done, 'a', 'y'), answeredAt: 9 }]
  expect(isLinearizable(both, 'a')).toBe(false)

  const removal = (outcome: Outcome, expected?: string) => ({
    ...operation(0, 1, 'removeIf', outcome),
    expected,
  })
  expect(isLinearizable([removal(done, 'a')], 'a')).toBe(true)
  expect(isLinearizable([removal(done, 'a')], 'b')).toBe(false)
  expect(isLinearizable([removal(done)], undefined)).toBe(false)
  expect(isLinearizable([removal(differs)], undefined)).toBe(false)
  expect(isLinearizable([removal({ is: 'absent' })], undefined)).toBe(true)
})

test('a version that names two states of a plant is noticed', async () => {
  const history = new History()
  const see = (id: bigint, seen: string) =>
    history.perform(id, 'read', undefined, async () => ({ ...sees(seen), version: 'v' }))
  await see(1n, 'a')
  await see(1n, 'a')
  await see(2n, 'b')
  await expect(see(1n, 'b')).rejects.toThrow('version v of 1')
})
