import { parseJsonRecord } from '@plant-store/json'
import { expect, test } from 'vitest'

const longChars = 256 * 1024
const levelsMax = 200_000
const shortChars = longChars / 64
/**
 * A long text may take longer for each character, because it leaves the processor's
 * caches. The square of the length would take 64 times.
 */
const perCharFactorMax = 20

const of = (part: string, chars: number) => part.repeat(Math.ceil(chars / part.length))

/** Returns levels as deep as is allowed, and as often in a row as the length takes. */
function levels(open: string, inner: string, close: string, chars: number): string {
  const count = Math.min(levelsMax - 2, Math.floor(chars / (open.length + close.length)))
  const deep = `${open.repeat(count)}${inner}${close.repeat(count)}`
  return `[${Array.from({ length: Math.ceil(chars / deep.length) }, () => deep).join(',')}]`
}

const texts: Record<string, (chars: number) => string> = {
  'zeros after the point': chars => `{"a":0.${of('0', chars)}}`,
  'digits before the point': chars => `{"a":1${of('0', chars)}}`,
  'digits that an exponent takes back': chars => `{"a":1${of('0', chars)}e-${chars}}`,
  'digits of an exponent': chars => `{"a":1e${of('9', chars)}}`,
  'leading zeros of an exponent': chars => `{"a":1e${of('0', chars)}1}`,
  'digits of a fraction': chars => `{"a":1.${of('7', chars)}}`,
  'backslashes in a value': chars => `{"a":"${of('\\\\', chars)}"}`,
  'backslashes in a name': chars => `{"${of('\\\\', chars)}":1}`,
  'quotes in a value': chars => `{"a":"${of('\\"', chars)}"}`,
  'quotes in a name': chars => `{"${of('\\"', chars)}":1}`,
  'backslashes before quotes': chars => `{"a":"${of('\\\\\\\\\\\\\\"', chars)}"}`,
  'arrays in arrays': chars => `{"a":${levels('[', '', ']', chars)}}`,
  'objects in objects': chars => levels('{"a":', '1', '}', chars),
  'objects of one member': chars => `[${of('{"a":1},', chars).slice(0, -1)}]`,
  'members of one object': chars =>
    `{${Array.from({ length: Math.ceil(chars / 11) }, (_, n) => `"m${100_000 + n}":1`).join(',')}}`,
  'escaped names': chars =>
    `{${Array.from({ length: Math.ceil(chars / 16) }, (_, n) => `"\\u006d${100_000 + n}":1`).join(',')}}`,
  'escaped names, one in another': chars => levels('{"\\u0061":', '1', '}', chars),
  'repeated names in different objects': chars =>
    `{"a":[${of('{"id":1,"name":2},', chars).slice(0, -1)}]}`,
  'white space': chars => `{${of(' \n', chars)}"a":1}`,
  'commas in strings': chars => `[${of('",",', chars).slice(0, -1)}]`,
}

const msOf = (text: string) => {
  const start = performance.now()
  parseJsonRecord(text)
  return performance.now() - start
}

test.each(Object.entries(texts))(
  'reads 256 KiB of %s in time that grows with its length only',
  (_, make) => {
    const short = make(shortChars)
    const long = make(longChars)
    const shortMs = Math.min(...Array.from({ length: 8 }, () => msOf(short)))
    // A clock of lower resolution would measure less than a nanosecond a character.
    const longMsMax =
      perCharFactorMax * Math.max(shortMs / short.length, 1e-6) * long.length
    // The best of several counts, because other programs use the machine too.
    let longMs = Number.POSITIVE_INFINITY
    for (let round = 0; round < 10 && longMs >= longMsMax; round++) {
      longMs = Math.min(longMs, msOf(long))
    }
    expect(longMs).toBeLessThan(longMsMax)
  },
)

test('reads 170,000 objects of one member, each with a name of its own', () => {
  const text = `[${Array.from({ length: 170_000 }, (_, n) => `{"${n}":${n}}`).join(',')}]`
  const read = parseJsonRecord(text) as Record<string, bigint>[]
  expect(read.length).toBe(170_000)
  expect(read[169_999]).toEqual({ 169999: 169_999n })
})

test('is exact at that length too', () => {
  const zeros = '0'.repeat(longChars)
  const text = `{"a":1${zeros}e-${longChars},"b":0.${zeros}7e${longChars + 1},"c":-0.${zeros}e5,"d":1${zeros}}`
  expect(parseJsonRecord(text)).toEqual({
    a: 1n,
    b: 7n,
    c: 0n,
    d: Number.POSITIVE_INFINITY,
  })
})

test('refuses a repeated name after many others', () => {
  const members = Array.from({ length: 20_000 }, (_, n) => `"m${100_000 + n}":1`).join(
    ',',
  )
  expect(() => parseJsonRecord(`{${members},"m100000":2}`)).toThrow(
    /Duplicate member "m100000"/,
  )
})
