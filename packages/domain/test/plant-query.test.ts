import assert from 'node:assert/strict'
import {
  DomainError,
  int64Max,
  int64Min,
  pageLimitDefault,
  parsePlantListQuery,
  searchedTextMax,
} from '@plant-store/domain'
import { expect, test } from 'vitest'

const longestText = '🌱'.repeat(searchedTextMax)

test('a query has the limit of 100 and no bounds when nothing is given', () => {
  expect(pageLimitDefault).toBe(100)
  expect(parsePlantListQuery({})).toEqual({ limit: 100 })

  const undefinedMembers = { limit: undefined, after: undefined, tag: undefined }
  const query = parsePlantListQuery(undefinedMembers)
  expect(Object.keys(query)).toEqual(['limit'])
})

test.each([
  { limit: 1 },
  { limit: 1000 },
  { after: int64Min },
  { after: int64Max },
  { tag: '' },
  { tag: ' ünï 🌱 ' },
  { name_contains: ' %' },
  { name_contains: longestText },
  { count: true, tag: 't' },
  { count: false, name_contains: 'n' },
])('the query %o is accepted', input => {
  expect(parsePlantListQuery(input)).toEqual({ limit: 100, ...input })
})

test('a refusal says in words what to mend', () => {
  expect(refusalOf({ name_contains: '', count: true })?.message).toBe(
    'name_contains must have 1 to 100 characters; count cannot be used with name_contains',
  )
})

const wrongLimits = [0, null]
const wrongIds = [1, null, int64Max + 1n]
const wrongTags = [null, '\ud800']
const wrongParts = [...wrongTags, '', 'x'.repeat(searchedTextMax + 1)]
const wrongFlags = ['', 'true', 1, null]

test.each([
  ...wrongLimits.map(limit => ({ limit })),
  ...wrongIds.map(after => ({ after })),
  ...wrongTags.map(tag => ({ tag })),
  ...wrongParts.map(name_contains => ({ name_contains })),
  ...wrongFlags.map(count => ({ count })),
  { limit: 0, after: '1', tag: '\0' },
])('a refusal of %o names every fault at once', input => {
  const refusal = refusalOf(input)

  expect(refusal?.code).toBe('invalid-query')
  const fields = refusal?.faults.map(({ field }) => field)
  expect(fields).toEqual(Object.keys(input))
})

/** Returns the error with which a query is refused, if it is. */
function refusalOf(input: object) {
  try {
    parsePlantListQuery(input)
  } catch (error) {
    assert(error instanceof DomainError, `the parser failed with ${error}`)
    return error
  }
  return
}
