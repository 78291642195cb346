import assert from 'node:assert/strict'
import {
  DomainError,
  int64Max,
  type PlantId,
  parsePlant,
  parsePlantId,
} from '@plant-store/domain'
import { describe, expect, test } from 'vitest'

/** Returns the error with which a value is refused. */
function refusalOf(input: unknown, id?: PlantId): DomainError {
  try {
    parsePlant(input, id)
  } catch (error) {
    assert(error instanceof DomainError, `the parser failed with ${error}`)
    return error
  }
  throw new Error('it was accepted')
}

function faultyFields(input: unknown, id?: PlantId): string[] {
  return refusalOf(input, id).faults.map(({ field }) => field)
}

describe('a plant', () => {
  test('has no tag if none was given', () => {
    const plant = parsePlant({ id: 1n, name: 'a', tag: undefined })

    expect(Object.entries(plant)).toEqual([
      ['id', 1n],
      ['name', 'a'],
    ])
  })

  test('has no member that plants do not have', () => {
    const extraMembers = { Name: 'b', extra: {}, constructor: 1 }

    const plant = parsePlant({ id: 1n, name: 'a', ...extraMembers })

    expect(plant).toEqual({ id: 1n, name: 'a' })
    expect(Object.keys(plant)).toEqual(['id', 'name'])
  })

  test('has own members only', () => {
    const inheriting = Object.create({ id: 1n, name: 'a' })
    const withInheritedTag = Object.create({ tag: 'inherited' })
    Object.assign(withInheritedTag, { id: 1n, name: 'a' })

    expect(faultyFields(inheriting)).toEqual(['id', 'name'])
    expect(parsePlant(withInheritedTag)).toEqual({ id: 1n, name: 'a' })
  })

  test.each([undefined, null, 1n, 'text', true, [], [{}], () => {}])(
    'is not %o',
    value => {
      const faults = [{ field: 'plant', problem: 'must be an object' }]

      expect(refusalOf(value)).toMatchObject({ code: 'invalid-plant', faults })
    },
  )
})

describe('a refusal', () => {
  const everyField = ['id', 'name', 'tag']

  test.each([
    [{}, ['id', 'name']],
    [{ id: 1n }, ['name']],
    [{ name: 'a' }, ['id']],
    [{ id: null, name: null, tag: null }, everyField],
    [{ id: '1', name: ['a'], tag: {} }, everyField],
    [{ id: int64Max + 1n, name: '\ud800', tag: 'a\0' }, everyField],
    [{ id: 1n, name: 'a', tag: null }, ['tag']],
  ])('of %o names every fault at once', (input, fields) => {
    const { code, faults, message } = refusalOf(input)

    expect(code).toBe('invalid-plant')
    expect(faults.map(({ field }) => field)).toEqual(fields)
    const words = faults.map(({ field, problem }) => `${field} ${problem}`)
    expect(message).toBe(words.join('; '))
  })
})

describe('a plant whose id is already known', () => {
  const seven = parsePlantId(7n)

  test('may have no id, or the same', () => {
    const plant = { id: 7n, name: 'a' }

    expect(parsePlant({ name: 'a' }, seven)).toEqual(plant)
    expect(parsePlant(plant, seven)).toEqual(plant)
  })

  test('is refused with another id, and with all its other faults', () => {
    const { message } = refusalOf({ id: 8n, tag: 1 }, seven)

    expect(message).toBe('id must equal 7; name is required; tag must be a string')
    expect(faultyFields({ id: null, name: 'a' }, seven)).toEqual(['id'])
  })
})
