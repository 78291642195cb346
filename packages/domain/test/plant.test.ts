import { DomainError, int64Max, isSame, parsePlant, parsePlantId, plantMembers } from '@plant-store/domain'
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
    if (error instanceof DomainError) return error
    throw error
  }
  throw new Error('it was accepted')
}
const faultyFields = (input: unknown, id?: bigint) => refusalOf(input, id).faults.map(({ field }) => field)

test('a plant has an id and a name, and a tag only when one was given', () => {
  expect(parsePlant({ id: 1n, name: 'Monstera' })).toEqual({ id: 1n, name: 'Monstera' })
  expect(parsePlant({ id: 1n, name: 'Monstera', tag: 'climber' })).toEqual({
    id: 1n,
    name: 'Monstera',
    tag: 'climber',
  })
  expect(Object.hasOwn(parsePlant({ id: 1n, name: 'a', tag: undefined }), 'tag')).toBe(false)
})

test.each([
  ['an empty text', ''],
  ['white space around', '  Monstera\t\n'],
  ['any script', 'Übergröße 漢字 עברית ไทย'],
  ['emoji and joiners', '👨‍🌾🌱'],
  ['control characters', '\u0001\u001b\u007f\u0085'],
  ['what is not normalised', 'e\u0301\u00e9'],
  ['marks of order and line ends', '\u202e\u2028\ufeff'],
  ['noncharacters', '\uffff\u{10ffff}'],
  ['a million characters', 'x'.repeat(1_000_000)],
])('keeps %s in name and tag as it is', (_, text) => {
  const plant = parsePlant({ id: 1n, name: text, tag: text })
  expect(plant.name).toBe(text)
  expect(plant.tag).toBe(text)
})

test('keeps any Unicode text, and refuses any other, at random', () => {
  fc.assert(
    fc.property(fc.string({ unit: character }), fc.bigInt(-(2n ** 63n), int64Max), (name, id) => {
      if (name.includes('\0')) expect(faultyFields({ id, name })).toEqual(['name'])
      else expect(parsePlant({ id, name })).toEqual({ id, name })
    }),
  )
  fc.assert(
    fc.property(fc.string(), fc.integer({ min: 0xd800, max: 0xdfff }), fc.string(), (before, unit, after) => {
      expect(faultyFields({ id: 1n, name: before + String.fromCharCode(unit) + after })).toEqual(['name'])
    }),
  )
})

test('leaves out every member that a plant does not have', () => {
  const plant = parsePlant({ id: 1n, name: 'a', Name: 'b', extra: {}, constructor: 1 })
  expect(Object.keys(plant)).toEqual(['id', 'name'])
})

test('reads own members only', () => {
  expect(faultyFields(Object.create({ id: 1n, name: 'a' }))).toEqual(['id', 'name'])
  expect(parsePlant(Object.assign(Object.create({ tag: 'inherited' }), { id: 1n, name: 'a' }))).toEqual({
    id: 1n,
    name: 'a',
  })
  expect(parsePlant(Object.assign(Object.create(null), { id: 1n, name: 'a' }))).toEqual({ id: 1n, name: 'a' })
})

test.each([undefined, null, 'plant', 1, 1n, true, [], [{ id: 1n, name: 'a' }]])(
  'refuses %s, which is no object',
  input => {
    expect(refusalOf(input)).toMatchObject({
      code: 'invalid-plant',
      faults: [{ field: 'plant', problem: 'must be an object' }],
    })
  },
)

test.each([
  [{}, ['id', 'name']],
  [{ id: 1n }, ['name']],
  [{ name: 'a' }, ['id']],
  [{ id: null, name: null, tag: null }, ['id', 'name', 'tag']],
  [{ id: 1, name: 5, tag: 5n }, ['id', 'name', 'tag']],
  [{ id: '1', name: ['a'], tag: {} }, ['id', 'name', 'tag']],
  [{ id: true, name: false, tag: true }, ['id', 'name', 'tag']],
  [{ id: int64Max + 1n, name: '\ud800', tag: 'a\0' }, ['id', 'name', 'tag']],
  [{ id: 1n, name: 'a', tag: null }, ['tag']],
  [{ id: 1n, name: '\udc00\ud800' }, ['name']],
])('reports every fault of %o at once', (input, fields) => {
  const error = refusalOf(input)
  expect(error.code).toBe('invalid-plant')
  expect(error.faults.map(({ field }) => field)).toEqual(fields)
  expect(error.message).toBe(error.faults.map(({ field, problem }) => `${field} ${problem}`).join('; '))
})

test('says in words what to mend', () => {
  expect(refusalOf({ id: 1, tag: '\ud800' }).message).toBe(
    'id must be an integer from -9223372036854775808 to 9223372036854775807; name is required; tag must be Unicode text without lone surrogates',
  )
  expect(refusalOf({}).message).toBe('id is required; name is required')
  expect(refusalOf({ id: 1n, name: 7, tag: '\0' }).message).toBe(
    'name must be a string; tag must not contain U+0000',
  )
})

test('takes the id from elsewhere, when the plant itself has none or the same', () => {
  expect(parsePlant({ name: 'a' }, parsePlantId(7n))).toEqual({ id: 7n, name: 'a' })
  expect(parsePlant({ id: 7n, name: 'a' }, parsePlantId(7n))).toEqual({ id: 7n, name: 'a' })
  expect(parsePlant({ id: 0n, name: 'a' }, parsePlantId(0n))).toEqual({ id: 0n, name: 'a' })
})

test('refuses an id that is not the one it is for, beside the other faults', () => {
  expect(refusalOf({ id: 8n, tag: 1 }, 7n).message).toBe(
    'id must equal 7; name is required; tag must be a string',
  )
  expect(faultyFields({ id: null, name: 'a' }, 7n)).toEqual(['id'])
  expect(faultyFields({ id: 7, name: 'a' }, 7n)).toEqual(['id'])
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
  const required = members.filter(([, { isRequired }]) => isRequired).map(([member]) => member)
  expect(required).toEqual(faultyFields({}))
})
