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

/** Repeats a part up to a number of characters. */
function fill(part: string, chars: number) {
  return part.repeat(Math.ceil(chars / part.length))
}

/** Returns elements with a comma between two. */
function list(count: number, elementAt: (n: number) => string) {
  const elements = Array.from({ length: count }, (_, n) => elementAt(n))
  return elements.join(',')
}

/** Returns an array of elements that are as deep as is allowed. */
function levels(open: string, inner: string, close: string, chars: number) {
  const charsPerLevel = open.length + close.length
  const count = Math.min(levelsMax - 2, Math.floor(chars / charsPerLevel))
  const element = open.repeat(count) + inner + close.repeat(count)
  return `[${list(Math.ceil(chars / element.length), () => element)}]`
}

const texts: Record<string, (chars: number) => string> = {
  'zeros after the point': chars => `{"a":0.${fill('0', chars)}}`,
  'digits that an exponent takes back': chars => `{"a":1${fill('0', chars)}e-${chars}}`,
  'arrays in arrays': chars => `{"a":${levels('[', '', ']', chars)}}`,
  'objects in objects': chars => levels('{"a":', '1', '}', chars),
  'members of one object': chars => `{${list(chars / 11, memberAt)}}`,
  'escaped names': chars => `{${list(chars / 16, n => `"\\u006d${100_000 + n}":1`)}}`,
  'escaped names, one in another': chars => levels('{"\\u0061":', '1', '}', chars),
  'repeated names in different objects': chars =>
    `{"a":[${list(chars / 18, () => '{"id":1,"name":2}')}]}`,
}

function memberAt(n: number) {
  return `"m${100_000 + n}":1`
}

/** Returns the time of the fastest of several readings that is below a limit. */
function readingMs(text: string, roundsMax: number, limitMs = 0) {
  let fastestMs = Number.POSITIVE_INFINITY
  for (let round = 0; round < roundsMax && fastestMs >= limitMs; round++) {
    const startMs = performance.now()
    parseJsonRecord(text)
    fastestMs = Math.min(fastestMs, performance.now() - startMs)
  }
  return fastestMs
}

test.each(Object.entries(texts))(
  'reads 256 KiB of %s in time that grows with its length only',
  (_, make) => {
    const short = make(shortChars)
    const long = make(longChars)

    // A clock of lower resolution would measure less than a nanosecond a character.
    const msPerChar = Math.max(readingMs(short, 8) / short.length, 1e-6)
    const longMsMax = perCharFactorMax * msPerChar * long.length

    // The fastest reading counts, because other programs use the machine too.
    expect(readingMs(long, 50, longMsMax)).toBeLessThan(longMsMax)
  },
)
