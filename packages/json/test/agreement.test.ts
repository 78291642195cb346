import { parseJsonRecord } from '@plant-store/json'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { RepeatedMember, readJson } from './reference-reader.ts'

/**
 * Any character of Unicode. The unit of fast-check for that takes seconds to get ready.
 */
const character = fc
  .integer({ min: 0, max: 0x10ffff - 0x800 })
  .map(n => String.fromCodePoint(n < 0xd800 ? n : n + 0x800))

/** Names that come up again and again, so that members repeat. */
const name = fc.oneof(
  fc.constantFrom('a', 'b', 'id', '__proto__', '', '\\', '"'),
  fc.string({ unit: character, maxLength: 4 }),
)
const space = fc.constantFrom('', '', '', ' ', '\n\t', '\r')

/** Writes text as JSON with some characters escaped that needn't be. */
const written = (text: fc.Arbitrary<string>) =>
  fc.tuple(text, fc.infiniteStream(fc.nat(3))).map(([value, dice]) => {
    const units = value.split('').map(unit => {
      const mustEscape =
        unit === '"' || unit === '\\' || unit < ' ' || /[\ud800-\udfff]/.test(unit)
      return mustEscape || dice.next().value === 0
        ? `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
        : unit
    })
    return `"${units.join('')}"`
  })

const { document: documents } = fc.letrec<{
  document: string
  object: string
  array: string
}>(tie => ({
  document: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    fc.constantFrom(
      'true',
      'false',
      'null',
      '0',
      '-0',
      '-1',
      '12e1',
      '1.5',
      '9007199254740993',
      '2.50E+1',
      '1e400',
    ),
    written(fc.string({ unit: character, maxLength: 6 })),
    tie('object'),
    tie('array'),
  ),
  object: fc
    .tuple(fc.array(fc.tuple(written(name), tie('document')), { maxLength: 5 }), space)
    .map(
      ([members, gap]) =>
        `{${gap}${members.map(([key, value]) => `${gap}${key}${gap}:${gap}${value}`).join(',')}}`,
    ),
  array: fc
    .tuple(fc.array(tie('document'), { maxLength: 4 }), space)
    .map(
      ([elements, gap]) => `[${elements.map(each => gap + each).join(`${gap},`)}${gap}]`,
    ),
}))

/** The result of a reader for a text: a value, or why there is none. */
function outcome(read: (text: string) => unknown, text: string) {
  try {
    return { value: read(text) }
  } catch (error) {
    if (error instanceof RepeatedMember) {
      return 'repeated member'
    }
    if (!(error instanceof SyntaxError)) {
      throw error
    }
    return error.message.includes('Duplicate member') ? 'repeated member' : 'syntax'
  }
}

function kindOf(expected: ReturnType<typeof outcome>): 'valid' | 'repeated' | 'damaged' {
  if (expected === 'syntax') {
    return 'damaged'
  }
  return expected === 'repeated member' ? 'repeated' : 'valid'
}

test('random documents are read as a plain reader does', () => {
  const seen = { valid: 0, repeated: 0, damaged: 0 }
  const damage = fc.tuple(
    fc.nat(),
    fc.nat(3),
    fc.constantFrom(
      '',
      '"',
      '\\',
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '0',
      '-',
      'e',
      '.',
      '\0',
    ),
  )
  fc.assert(
    fc.property(documents, fc.array(damage, { maxLength: 2 }), (whole, damages) => {
      const text = damages.reduce((each, [place, cut, put]) => {
        const at = place % (each.length + 1)
        return each.slice(0, at) + put + each.slice(at + cut)
      }, whole)
      const isJson = outcome(JSON.parse, text) !== 'syntax'
      const expected = isJson ? outcome(readJson, text) : 'syntax'
      seen[kindOf(expected)] += 1

      expect(outcome(parseJsonRecord, text), text).toEqual(expected)
    }),
    { numRuns: 5_000 },
  )
  expect(seen.valid).toBeGreaterThan(500)
  expect(seen.repeated).toBeGreaterThan(50)
  expect(seen.damaged).toBeGreaterThan(1_000)
})

test('reads what JSON.parse reads, but for the integers of the record', () => {
  fc.assert(
    fc.property(
      fc.jsonValue({ maxDepth: 4 }),
      fc.constantFrom(0, 1, '\t'),
      (value, indent) => {
        const text = JSON.stringify(value, null, indent)
        const asNumbers = JSON.stringify(parseJsonRecord(text), (_, each) =>
          typeof each === 'bigint' ? Number(each) : each,
        )
        expect(JSON.parse(asNumbers)).toEqual(JSON.parse(text))
      },
    ),
    { numRuns: 500 },
  )
})
