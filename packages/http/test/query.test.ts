import { parsePlantId } from '@plant-store/domain'
import type { FastifyRequest } from 'fastify'
import { describe, expect, test } from 'vitest'
import { nextPage, readInteger, readLimit, readQuery } from '../src/request/query.ts'

const read = (query: string) => readQuery(`/plants${query}`, ['limit', 'after', 'tag'])

test.each([
  ['', {}],
  ['?', {}],
  ['?limit=1&&after=-5', { limit: '1', after: '-5' }],
  ['?tag', { tag: '' }],
  ['?tag=', { tag: '' }],
  ['?t%61g=a+b%2B%C3%A9', { tag: 'a b+é' }],
  ['?tag=a=b?c', { tag: 'a=b?c' }],
])('the query of /plants%s is read', (query, expected) => {
  expect(read(query)).toEqual(expected)
})

const wrongCharacters = 'the query has characters that must be percent-encoded'
const wrongCoding = 'the query is not correctly percent-encoded UTF-8'
test.each([
  ['?tag=é', 'bad-target', wrongCharacters],
  ['?tag=\x7f', 'bad-target', wrongCharacters],
  ['?tag=a b', 'bad-target', wrongCharacters],
  ['?é', 'bad-target', wrongCharacters],
  ['?tag=%ff', 'bad-target', wrongCoding],
  ['?%zz=1', 'bad-target', wrongCoding],
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

test.each(['0', '7', '-1', '10', '9223372036854775807', '-9223372036854775808'])(
  'the integer "%s" is read exactly',
  text => {
    expect(`${readInteger(text)}`).toBe(text)
  },
)

test('a limit is read as a number, which only far beyond any limit is rounded', () => {
  expect(readLimit('1000')).toBe(1_000)
  expect(readLimit('9223372036854775807')).toBe(2 ** 63)
})

test.each([
  { why: 'nothing', text: '' },
  { why: 'a sign alone', text: '-' },
  { why: 'a negative zero', text: '-0' },
  { why: 'a zero in front', text: '01' },
  { why: 'a zero after the sign', text: '-01' },
  { why: 'a plus', text: '+1' },
  { why: 'a space in front', text: ' 1' },
  { why: 'a space behind', text: '1 ' },
  { why: 'a fraction', text: '1.0' },
  { why: 'an exponent', text: '1e3' },
  { why: 'another base', text: '0x1' },
  { why: 'more than 64 bits', text: '10000000000000000000' },
  { why: 'no parameter', text: undefined },
])('$why is no integer, and left to the domain', ({ text }) => {
  expect(readInteger(text)).toBe(text)
  expect(readLimit(text)).toBe(text)
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
    ['/a/b/plants#c', 'ö &', '/a/b/plants?limit=2&after=-7&tag=%C3%B6%20%26'],
    ['HTTPS://host:8/plants?limit=2', '', '/plants?limit=2&after=-7&tag='],
    ['http://host/plants', undefined, '/plants?limit=2&after=-7'],
    // A link that begins with two slashes would name another host.
    ['///evil/plants', undefined, '/evil/plants?limit=2&after=-7'],
    ['/<a>/plants', undefined, '/%3Ca%3E/plants?limit=2&after=-7'],
  ])('of %s with the tag %j', (url, tag, target) => {
    expect(linkOf(url, tag)).toBe(`<${target}>; rel="next"`)
  })

  test('is refused if it leaves no room for the other header fields', () => {
    const targetBytes = '/plants?limit=2&after=-7'.length
    const failure = (use: string) =>
      expect.objectContaining({
        code: 'headers-too-large',
        message: `the link to the next page would be too long: use ${use}`,
      })
    const withoutFields = (headerBytesMax: number) => () =>
      linkOf('/plants', undefined, [], headerBytesMax)
    const withFields = (headerBytesMax: number) => () =>
      linkOf('/plants', undefined, ['x', 'y'.repeat(1_999)], headerBytesMax)
    const withTag = (length: number) => () => linkOf('/plants', 'x'.repeat(length))
    const tagMax = 16_384 - 1025 - targetBytes - '&tag='.length

    expect(withoutFields(targetBytes + 1024)).toThrow(failure('a larger limit'))
    expect(withoutFields(targetBytes + 1025)).not.toThrow()
    expect(withFields(targetBytes + 2_000)).toThrow(failure('a larger limit'))
    expect(withFields(targetBytes + 2_001)).not.toThrow()
    const shorterTag = failure('a shorter tag or a larger limit')
    expect(withTag(tagMax + 1)).toThrow(shorterTag)
    expect(withTag(tagMax)).not.toThrow()
  })
})
