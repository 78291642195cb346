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
  const numerator = BigInt(whole + fraction)
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
  const digits = `${integer}`.replace('-', '').length
  return digits <= 19 ? integer : Number(source)
}

/** Reads a text. @param text valid JSON */
export function readJson(text: string): unknown {
  return new Reader(text).readValue('outermost')
}

/** Where a value stands: only a number that is a member of a record becomes a bigint. */
type Place = 'outermost' | 'element' | 'member' | 'below'

const words = new Map<string, unknown>([
  ['true', true],
  ['false', false],
  ['null', null],
])

class Reader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  readValue(place: Place): unknown {
    this.#skipSpace()
    switch (this.#text[this.#at]) {
      case '"':
        return this.#readString()
      case '{':
        return this.#readObject(place)
      case '[':
        return this.#readArray(place)
      default:
        return this.#readWord(place)
    }
  }

  #readString(): string {
    const start = this.#at
    this.#at += 1
    while (this.#text[this.#at] !== '"') {
      this.#at += this.#text[this.#at] === '\\' ? 2 : 1
    }
    this.#at += 1
    return JSON.parse(this.#text.slice(start, this.#at))
  }

  #readObject(place: Place): object {
    const isRecord = place === 'outermost' || place === 'element'
    const members = new Map<string, unknown>()
    this.#at += 1
    while (!this.#isAtEnd('}')) {
      const name = this.#readString()
      if (members.has(name)) {
        throw new RepeatedMember(name)
      }
      this.#skipSpace()
      this.#at += 1
      members.set(name, this.readValue(isRecord ? 'member' : 'below'))
    }
    return Object.fromEntries(members)
  }

  #readArray(place: Place): unknown[] {
    const elements: unknown[] = []
    this.#at += 1
    while (!this.#isAtEnd(']')) {
      elements.push(this.readValue(place === 'outermost' ? 'element' : 'below'))
    }
    return elements
  }

  #readWord(place: Place): unknown {
    const start = this.#at
    // The empty character at the end ends a word, because every text includes it.
    while (!' \t\n\r,]}'.includes(this.#charHere())) {
      this.#at += 1
    }
    const word = this.#text.slice(start, this.#at)
    if (words.has(word)) {
      return words.get(word)
    }
    return place === 'member' ? exactMember(word) : Number(word)
  }

  /** Skips white space and a comma. Returns whether the bracket follows, and skips it. */
  #isAtEnd(bracket: string): boolean {
    this.#skipSpace()
    if (this.#charHere() === ',') {
      this.#at += 1
      this.#skipSpace()
    }
    if (this.#charHere() !== bracket) {
      return false
    }
    this.#at += 1
    return true
  }

  #skipSpace(): void {
    while (' \t\n\r'.includes(this.#text[this.#at] ?? 'end')) {
      this.#at += 1
    }
  }

  #charHere(): string {
    return this.#text[this.#at] ?? ''
  }
}
