import { parseJsonRecord } from '@plant-store/json'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { character, numbers } from './arbitraries.ts'
import { RepeatedMember, readJson } from './reference-reader.ts'

/** Names that come up again and again, so that members repeat. */
const name = fc.oneof(
  fc.constantFrom('a', 'b', 'id', '__proto__', '', '\\', '"'),
  fc.string({ unit: character, maxLength: 4 }),
)
const space = fc.constantFrom('', '', '', ' ', '\n\t', '\r')

/** Writes text as JSON with some characters escaped that needn't be. */
function written(texts: fc.Arbitrary<string>) {
  const dice = fc.infiniteStream(fc.nat(3))
  return fc.tuple(texts, dice).map(([text, rolls]) => {
    const units = text.split('').map(unit => {
      const mustEscape = unit < ' ' || /["\\\ud800-\udfff]/.test(unit)
      return mustEscape || rolls.next().value === 0 ? escapeOf(unit) : unit
    })
    return `"${units.join('')}"`
  })
}

function escapeOf(unit: string) {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
}

const { document: documents } = fc.letrec<{
  document: string
  object: string
  array: string
}>(tie => ({
  document: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    fc.constantFrom('true', 'false', 'null'),
    numbers,
    written(fc.string({ unit: character, maxLength: 6 })),
    tie('object'),
    tie('array'),
  ),
  object: fc
    .record({
      members: fc.array(fc.tuple(written(name), tie('document')), { maxLength: 5 }),
      gap: space,
    })
    .map(({ members, gap }) => {
      const texts = members.map(([key, value]) => `${key}${gap}:${gap}${value}`)
      return `{${gap}${texts.join(`,${gap}`)}}`
    }),
  array: fc
    .record({ elements: fc.array(tie('document'), { maxLength: 4 }), gap: space })
    .map(({ elements, gap }) => {
      const texts = elements.map(element => gap + element)
      return `[${texts.join(`${gap},`)}${gap}]`
    }),
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

test('random documents are read as a plain reader does', () => {
  const counts = new Map<unknown, number>()
  const damage = fc.tuple(fc.nat(), fc.nat(3), fc.constantFrom('', ...'"\\{}[],:0-e.\0'))
  const damagesOfText = fc.array(damage, { maxLength: 2 })
  fc.assert(
    fc.property(documents, damagesOfText, (whole, damages) => {
      const text = damages.reduce((intact, [place, cutLength, insertion]) => {
        const at = place % (intact.length + 1)
        return intact.slice(0, at) + insertion + intact.slice(at + cutLength)
      }, whole)
      const isJson = outcome(JSON.parse, text) !== 'syntax'
      const expected = isJson ? outcome(readJson, text) : 'syntax'
      const kind = typeof expected === 'string' ? expected : 'valid'
      counts.set(kind, (counts.get(kind) ?? 0) + 1)

      expect(outcome(parseJsonRecord, text), text).toEqual(expected)
    }),
    { numRuns: 3_000 },
  )
  expect(counts.get('valid')).toBeGreaterThan(300)
  expect(counts.get('repeated member')).toBeGreaterThan(30)
  expect(counts.get('syntax')).toBeGreaterThan(600)
})
