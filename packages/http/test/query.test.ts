import { parsePlantId } from '@plant-store/domain'
import type { FastifyRequest } from 'fastify'
import { describe, expect, test } from 'vitest'
import { nextPage, readNumber, readQuery } from '../src/request/query.ts'

const read = (query: string) => readQuery(`/plants${query}`, ['limit', 'after', 'tag'])

test('a query is read as a form is, with empty parameters left out', () => {
  const query = read('?limit=1&&t%61g=a+b%2B%C3%A9=c?d&after')

  expect(query).toEqual({ limit: '1', tag: 'a b+é=c?d', after: '' })
})

const wrongCharacters = 'the query has characters that must be percent-encoded'
const wrongCoding = 'the query is not correctly percent-encoded UTF-8'
test.each([
  ['?tag=é', 'bad-target', wrongCharacters],
  ['?tag=a b', 'bad-target', wrongCharacters],
  ['?tag=%ff', 'bad-target', wrongCoding],
  [
    '?tag=1&limit=1&tag=1',
    'repeated-parameter',
    'the query parameter tag occurs more than once',
  ],
  [
    '?limt=5',
    'unknown-parameter',
    'the query parameter limt is unknown: this operation has limit, after, tag',
  ],
])('the query of /plants%s is refused', (query, code, message) => {
  expect(() => read(query)).toThrow(expect.objectContaining({ code, message }))
})

test('a number is read only in the form in which it is written', () => {
  expect(readNumber('1000')).toBe(1_000)
  expect(readNumber('-1.5')).toBe(-1.5)
  expect(readNumber('01')).toBe('01')
  expect(readNumber('1e3')).toBe('1e3')
  expect(readNumber('9223372036854775807')).toBe('9223372036854775807')
  expect(readNumber(undefined)).toBeUndefined()
})

describe('the link to the next page', () => {
  const after = parsePlantId(-7n)
  const linkOf = (
    url: string,
    tag?: string,
    rawHeaders: string[] = [],
    headerBytesMax = 16_384,
  ) => {
    const query = { limit: 2, ...(tag !== undefined && { tag }) }
    return nextPage(
      { url, raw: { rawHeaders } } as unknown as FastifyRequest,
      after,
      query,
      headerBytesMax,
    )
  }

  test.each([
    ['/plants?limit=2&tag=other', undefined, '/plants?limit=2&after=-7'],
    ['/a/b/plants#c', 'ö &', '/a/b/plants?limit=2&tag=%C3%B6%20%26&after=-7'],
    ['/plants', '', '/plants?limit=2&tag=&after=-7'],
  ])('of %s with the tag %j', (url, tag, target) => {
    expect(linkOf(url, tag)).toBe(`<${target}>; rel="next"`)
  })

  test('is refused if it leaves no room for the other header fields', () => {
    const targetBytes = '/plants?limit=2&after=-7'.length
    const withFields = (headerBytesMax: number, bytes: number) => () =>
      linkOf('/plants', undefined, ['x', 'y'.repeat(bytes - 1)], headerBytesMax)
    const withTag = (length: number) => () => linkOf('/plants', 'x'.repeat(length))
    const tagMax = 16_384 - 1025 - targetBytes - '&tag='.length
    const advice = 'the link to the next page would be too long: use a '

    // An answer has other fields, and the next request those of this one.
    expect(withFields(targetBytes + 1024, 2)).toThrow(`${advice}larger limit`)
    expect(withFields(targetBytes + 1025, 2)).not.toThrow()
    expect(withFields(targetBytes + 2_000, 2_000)).toThrow(`${advice}larger limit`)
    expect(withFields(targetBytes + 2_001, 2_000)).not.toThrow()
    expect(withTag(tagMax + 1)).toThrow(`${advice}shorter tag or a larger limit`)
    expect(withTag(tagMax)).not.toThrow()
  })
})
