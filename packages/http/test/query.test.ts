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

test('an integer is read exactly, and any other text is left to the domain', () => {
  for (const text of [
    '0',
    '7',
    '-1',
    '10',
    '9223372036854775807',
    '-9223372036854775808',
  ]) {
    expect(readInteger(text)).toBe(BigInt(text))
    expect(readLimit(text)).toBe(Number(text))
  }
  const others = [
    '',
    '-',
    '-0',
    '01',
    '-01',
    '+1',
    ' 1',
    '1 ',
    '1.0',
    '1e3',
    '0x1',
    '10000000000000000000',
  ]
  for (const text of others) {
    expect([readInteger(text), readLimit(text)]).toEqual([text, text])
  }
  expect([readInteger(undefined), readLimit(undefined)]).toEqual([undefined, undefined])
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
      { raw: { url, rawHeaders } } as unknown as FastifyRequest,
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
    const fails = (link: () => string, use = 'a larger limit') =>
      expect(link).toThrow(
        expect.objectContaining({
          code: 'headers-too-large',
          message: `the link to the next page would be too long: use ${use}`,
        }),
      )
    fails(() => linkOf('/plants', undefined, [], targetBytes + 1024))
    linkOf('/plants', undefined, [], targetBytes + 1025)
    const fields = ['x', 'y'.repeat(1_999)]
    fails(() => linkOf('/plants', undefined, fields, targetBytes + 2_000))
    linkOf('/plants', undefined, fields, targetBytes + 2_001)
    const tagMax = 16_384 - 1025 - targetBytes - '&tag='.length
    fails(
      () => linkOf('/plants', 'x'.repeat(tagMax + 1)),
      'a shorter tag or a larger limit',
    )
    linkOf('/plants', 'x'.repeat(tagMax))
  })
})
