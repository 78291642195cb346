import {
  DomainError,
  int64Max,
  isSame,
  parsePlant,
  parsePlantId,
  plantMembers,
} from '@plant-store/domain'
import { fullPlant } from '@plant-store/domain/testing'
import fc from 'fast-check'
import { expect, test } from 'vitest'

/** Any character of Unicode. (fast-check's own unit for that takes seconds to get ready.) */
const character = fc
  .integer({ min: 0, max: 0x10ffff - 0x800 })
  .map(n => String.fromCodePoint(n < 0xd800 ? n : n + 0x800))

function refusalOf(input: unknown, id?: bigint): DomainError {
  try {
    parsePlant(input, id === undefined ? undefined : parsePlantId(id))
  } catch (error) {
    if (error instanceof DomainError) {
      return error
    }
    throw error
  }
  throw new Error('it was accepted')
}
const faultyFields = (input: unknown, id?: bigint) =>
  refusalOf(input, id).faults.map(({ field }) => field)

test('a plant has a tag only when one was given, and no member that a plant does not have', () => {
  const others = { Name: 'b', extra: {}, constructor: 1 }
  for (const input of [{ tag: undefined }, others]) {
    const plant = parsePlant({ id: 1n, name: 'a', ...input })
    expect(Object.entries(plant)).toEqual(Object.entries({ id: 1n, name: 'a' }))
  }
})

test('keeps any Unicode text, and refuses any other, at random', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: character }),
      fc.bigInt(-(2n ** 63n), int64Max),
      (text, id) => {
        if (text.includes('\0')) {
          expect(faultyFields({ id, name: text, tag: text })).toEqual(['name', 'tag'])
        } else {
          expect(parsePlant({ id, name: text, tag: text })).toEqual({
            id,
            name: text,
            tag: text,
          })
        }
      },
    ),
  )
  fc.assert(
    fc.property(
      fc.string(),
      fc.integer({ min: 0xd800, max: 0xdfff }),
      fc.string(),
      (before, unit, after) => {
        expect(
          faultyFields({ id: 1n, name: before + String.fromCharCode(unit) + after }),
        ).toEqual(['name'])
      },
    ),
  )
})

test('reads own members only', () => {
  expect(faultyFields(Object.create({ id: 1n, name: 'a' }))).toEqual(['id', 'name'])
  for (const prototype of [{ tag: 'inherited' }, null]) {
    const input = Object.assign(Object.create(prototype), { id: 1n, name: 'a' })
    expect(parsePlant(input)).toEqual({ id: 1n, name: 'a' })
  }
})

test('refuses what is no object', () => {
  const faults = [{ field: 'plant', problem: 'must be an object' }]
  for (const input of [null, [{ id: 1n, name: 'a' }]]) {
    expect(refusalOf(input)).toMatchObject({ code: 'invalid-plant', faults })
  }
})

test.each([
  [{}, ['id', 'name']],
  [{ id: 1n }, ['name']],
  [{ name: 'a' }, ['id']],
  [{ id: null, name: null, tag: null }, ['id', 'name', 'tag']],
  [{ id: '1', name: ['a'], tag: {} }, ['id', 'name', 'tag']],
  [{ id: int64Max + 1n, name: '\ud800', tag: 'a\0' }, ['id', 'name', 'tag']],
  [{ id: 1n, name: 'a', tag: null }, ['tag']],
])('reports every fault of %o at once', (input, fields) => {
  const error = refusalOf(input)
  expect(error.code).toBe('invalid-plant')
  expect(error.faults.map(({ field }) => field)).toEqual(fields)
  expect(error.message).toBe(
    error.faults.map(({ field, problem }) => `${field} ${problem}`).join('; '),
  )
})

test('says in words what to mend', () => {
  expect(refusalOf({ id: 1, tag: '\ud800' }).message).toBe(
    'id must be an integer from -9223372036854775808 to 9223372036854775807; name is required; tag must be Unicode text without lone surrogates',
  )
  expect(refusalOf({ id: 1n, name: 7, tag: '\0' }).message).toBe(
    'name must be a string; tag must not contain U+0000',
  )
})

test('takes the id from elsewhere, when the plant itself has none or the same', () => {
  expect(parsePlant({ name: 'a' }, parsePlantId(7n))).toEqual({ id: 7n, name: 'a' })
  expect(parsePlant({ id: 7n, name: 'a' }, parsePlantId(7n))).toEqual({
    id: 7n,
    name: 'a',
  })
})

test('refuses an id that is not the one it is for, beside the other faults', () => {
  expect(refusalOf({ id: 8n, tag: 1 }, 7n).message).toBe(
    'id must equal 7; name is required; tag must be a string',
  )
  expect(faultyFields({ id: null, name: 'a' }, 7n)).toEqual(['id'])
})

test('two plants are the same when every member is', () => {
  const members = { id: 1n, name: 'Monstera', tag: 'climber' }
  const plant = parsePlant(members)
  expect(isSame(plant, parsePlant(members))).toBe(true)
  for (const other of [{ id: 2n }, { name: 'Ficus' }, { tag: '' }, { tag: undefined }]) {
    expect(isSame(plant, parsePlant({ ...members, ...other }))).toBe(false)
  }
})

test('the list of members has each with its kind, and with whether a plant needs it', () => {
  const kinds = Object.entries(fullPlant(1n, 'text')).map(([member, value]) => [
    member,
    typeof value === 'bigint' ? 'integer' : 'text',
  ])
  const members = Object.entries(plantMembers)
  expect(members.map(([member, { type }]) => [member, type])).toEqual(kinds)
  const required = members
    .filter(([, { isRequired }]) => isRequired)
    .map(([member]) => member)
  expect(required).toEqual(faultyFields({}))
})
