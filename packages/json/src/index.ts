import { type EscapedName, readWithPlainNames } from './escaped-names.ts'

/**
 * Parses a JSON text (RFC 8259) that holds a record or an array of records, without two
 * losses of `JSON.parse`:
 *
 * - An integer of at most 19 digits that is a direct member of such a record becomes an
 *   exact bigint. `11.0` and `1e3` are integers too. Any other number is the nearest
 *   JavaScript number.
 * - A name that occurs twice in an object, at any depth, is refused (RFC 7493, 2.3).
 *
 * V8 checks the syntax, so the second pass only looks for what V8 lost. A text of more
 * than {@link levelsMax} levels is refused (RFC 8259, 9).
 *
 * @throws SyntaxError with what is wrong and where
 */
export function parseJsonRecord(text: string): unknown {
  checkLevels(text)

  const value: unknown = JSON.parse(text)
  const scanner = new LossScanner(text, value)
  scanner.scan()
  if (scanner.escapedNames === undefined) {
    return value
  }

  // V8 may have taken such a name for one of an earlier text (`escaped-names.ts`).
  const reread = readWithPlainNames(text, scanner.escapedNames)
  new LossScanner(text, reread).scan()
  return reread
}

/**
 * Writes a record of plain values and bigints, which {@link parseJsonRecord} reads back.
 * Leaves out what JSON cannot say, as `JSON.stringify` does: `undefined`, functions and
 * symbols.
 *
 * @throws TypeError for an array
 */
export function writeJsonRecord(record: object): string {
  if (Array.isArray(record)) {
    throw new TypeError('an array is no record')
  }

  let text = '{'
  let separator = ''
  // This is twice as fast as with `Object.entries`, for an export of millions.
  for (const name of Object.keys(record)) {
    const value = writeValue(record[name as keyof typeof record])
    if (value === undefined) {
      continue
    }
    text += `${separator}${JSON.stringify(name)}:${value}`
    separator = ','
  }
  return `${text}}`
}

/** Returns `undefined` for what JSON cannot say. */
function writeValue(value: unknown): string | undefined {
  if (typeof value === 'bigint') {
    return `${value}`
  }
  return JSON.stringify(value)
}

const quote = 0x22
const comma = 0x2c
const minus = 0x2d
const nine = 0x39
const openBracket = 0x5b
const backslash = 0x5c
const closeBracket = 0x5d
const openBrace = 0x7b
const closeBrace = 0x7d
const zero = 0x30

/**
 * How deep arrays and objects may lie within each other. V8 takes 64 bytes for each level
 * while it parses.
 */
const levelsMax = 200_000

/** @throws SyntaxError if a text has too many levels */
function checkLevels(text: string) {
  // A shorter text has fewer levels.
  if (text.length <= levelsMax) {
    return
  }

  let level = 0
  let at = 0
  while (at < text.length) {
    const code = text.charCodeAt(at)
    if (code === quote) {
      at = endOfString(text, at)
      // V8 reports a string that never ends.
      if (at === -1) {
        return
      }
    }

    level += levelChangeOf(code)
    if (level > levelsMax) {
      const message = `More than ${levelsMax} levels of arrays and objects at position ${at}`
      throw new SyntaxError(message)
    }
    at += 1
  }
}

function levelChangeOf(code: number) {
  switch (code) {
    case openBrace:
    case openBracket:
      return 1
    case closeBrace:
    case closeBracket:
      return -1
    default:
      return 0
  }
}

/** The names seen in an open object. A short list is searched faster than a set. */
type Names = string[] | Set<string>

/** How many names a list holds before it becomes a set. */
const listedNamesMax = 8

/** How much of a repeated name a message quotes. */
const quotedLengthMax = 100

/**
 * Walks over a valid text and restores what `JSON.parse` loses: it makes integers of the
 * records exact, and refuses a repeated name.
 */
class LossScanner {
  /** The names with a backslash, in their order. */
  escapedNames: EscapedName[] | undefined

  readonly #text: string
  /** The record that V8 made of the text, or its array of records. */
  readonly #value: unknown
  /** How deep the members of a record are: 1, or 2 in an array of records. */
  readonly #recordDepth: number
  /** The record that the walk has reached. */
  #recordIndex = 0
  /** How many objects and arrays are open. */
  #depth = 0
  /** The names of the object or array that is open, `null` for an array. */
  #names: Names | null = null
  /** The same of each object and array around it, the outermost first. */
  #enclosing: (Names | null)[] | undefined
  /** Whether the next string is the name of a member. */
  #isNameExpected = false
  /** The name that was read last. */
  #name = ''

  constructor(text: string, value: unknown) {
    this.#text = text
    this.#value = value
    this.#recordDepth = Array.isArray(value) ? 2 : 1
  }

  /** @throws SyntaxError if an object has a name twice */
  scan(): void {
    let at = 0
    while (at < this.#text.length) {
      at = this.#readToken(at)
    }
  }

  /** Reads what begins at a position, and returns the position after it. */
  #readToken(at: number) {
    const code = this.#text.charCodeAt(at)
    switch (code) {
      case quote:
        return this.#readString(at)
      case openBrace:
        this.#open([])
        break
      case openBracket:
        this.#open(null)
        break
      case closeBrace:
      case closeBracket:
        this.#close()
        break
      case comma:
        this.#passComma()
        break
      default:
        if (isStartOfNumber(code)) {
          return this.#readNumber(at)
        }
    }
    return at + 1
  }

  #readString(at: number) {
    const end = endOfString(this.#text, at)
    if (this.#isNameExpected) {
      this.#isNameExpected = false
      this.#readName(at, end)
    }
    return end + 1
  }

  #readName(start: number, lastQuote: number) {
    let name = this.#text.slice(start + 1, lastQuote)
    if (name.includes('\\')) {
      const end = lastQuote + 1
      name = JSON.parse(this.#text.slice(start, end))
      this.escapedNames ??= []
      this.escapedNames.push({ name, start, end })
    }
    // A name is expected only in an object, which has a list.
    this.#names = withName(this.#names ?? [], name, start)
    this.#name = name
  }

  #open(names: Names | null) {
    if (this.#depth > 0) {
      this.#enclosing ??= []
      this.#enclosing.push(this.#names)
    }
    this.#names = names
    this.#isNameExpected = names !== null
    this.#depth += 1
  }

  #close() {
    this.#names = this.#enclosing?.pop() ?? null
    this.#depth -= 1
  }

  #passComma() {
    this.#isNameExpected = this.#names !== null
    if (this.#depth < this.#recordDepth) {
      this.#recordIndex += 1
    }
  }

  #readNumber(at: number) {
    const end = endOfNumber(this.#text, at)
    const isMemberOfRecord = this.#depth === this.#recordDepth && this.#names !== null
    if (isMemberOfRecord) {
      const integer = exactInteger(this.#text.slice(at, end))
      if (integer !== undefined) {
        const value = this.#value
        const record = Array.isArray(value) ? value[this.#recordIndex] : value
        // V8 made an object of these braces.
        const members = record as Record<string, unknown>
        members[this.#name] = integer
      }
    }
    return end
  }
}

function isStartOfNumber(code: number) {
  return code === minus || (code >= zero && code <= nine)
}

/**
 * Returns the position of the last quotation mark of a string, or -1 if it never ends.
 */
function endOfString(text: string, start: number) {
  let end = text.indexOf('"', start + 1)
  while (isEscaped(text, end)) {
    end = text.indexOf('"', end + 1)
  }
  return end
}

/** Whether an odd number of backslashes stands before a position. */
function isEscaped(text: string, at: number) {
  let backslashes = 0
  while (text.charCodeAt(at - 1 - backslashes) === backslash) {
    backslashes += 1
  }
  return backslashes % 2 === 1
}

function endOfNumber(text: string, start: number) {
  let end = start + 1
  while (end < text.length && !isAfterNumber(text.charCodeAt(end))) {
    end += 1
  }
  return end
}

/** In valid JSON only white space, `,`, `]` or `}` follows a number. */
function isAfterNumber(code: number) {
  return code <= 0x20 || code === comma || code === closeBracket || code === closeBrace
}

/**
 * Adds a name, and returns the list or the set that replaces it.
 *
 * @throws SyntaxError if the name is there already
 */
function withName(names: Names, name: string, at: number): Names {
  const isRepeated = names instanceof Set ? names.has(name) : names.includes(name)
  if (isRepeated) {
    throw new SyntaxError(`Duplicate member ${quoted(name)} at position ${at}`)
  }

  if (names instanceof Set) {
    return names.add(name)
  }
  if (names.length === listedNamesMax) {
    return new Set(names).add(name)
  }
  names.push(name)
  return names
}

/** Quotes the beginning of a name for a message. */
function quoted(name: string) {
  if (name.length > quotedLengthMax) {
    return JSON.stringify(`${name.slice(0, quotedLengthMax)}…`)
  }
  return JSON.stringify(name)
}

const plainInteger = /^-?\d{1,19}$/
const numberParts =
  /^(?<sign>-?)(?<whole>\d+)(?:\.(?<fraction>\d+))?(?:[eE](?<power>[+-]?\d+))?$/

/** Returns the integer that a JSON number denotes, if it has at most 19 digits. */
function exactInteger(source: string): bigint | undefined {
  if (plainInteger.test(source)) {
    return BigInt(source)
  }

  const {
    sign,
    whole,
    fraction = '',
    power = '0',
  } = numberParts.exec(source)?.groups ?? {}
  // The digits of 12.50e3 are 1250, the significant ones 125, with two added zeros.
  const digits = `${whole}${fraction}`.replace(/^0+/, '')
  if (digits === '') {
    return 0n
  }

  const trailingZeros = countTrailingZeros(digits)
  const significant = digits.slice(0, digits.length - trailingZeros)
  const addedZeros = Number(power) - fraction.length + trailingZeros
  const isInteger = addedZeros >= 0
  if (!isInteger || significant.length + addedZeros > 19) {
    return undefined
  }
  return BigInt(`${sign}${significant}${'0'.repeat(addedZeros)}`)
}

/** A regular expression for this would take the square of the length. */
function countTrailingZeros(digits: string) {
  let count = 0
  while (digits.charCodeAt(digits.length - 1 - count) === zero) {
    count += 1
  }
  return count
}
