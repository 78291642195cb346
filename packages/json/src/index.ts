/**
 * Reads one JSON text (RFC 8259) that holds a record, without the two losses of `JSON.parse`:
 * a member of the record that is an integer within int64 is a bigint, exact from its digits
 * (`11.0` and `1e3` are integers too), and a member given twice, at any depth, is refused (RFC 7493, 2.3).
 * Every other number is the JavaScript number nearest to it: never take one for an exact value.
 *
 * V8 judges the syntax; the text is then known to be valid, so the second walk only looks for what V8 lost.
 *
 * @throws SyntaxError saying what is wrong and where.
 */
export function parseJsonRecord(text: string): unknown {
  const value: unknown = JSON.parse(text)
  if (typeof value === 'object' && value !== null) {
    restoreLosses(text, value as Record<string, unknown>)
  }
  return value
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

/** The names met in an object that is still open: a list as long as they are few, and looked up fastest there. */
type Names = undefined | string[] | Set<string>
const listedNamesMax = 8
const array = null

function restoreLosses(text: string, record: Record<string, unknown>): void {
  const enclosing: (Names | typeof array)[] = []
  let names: Names | typeof array
  let depth = 0
  let nameExpected = false
  let name = ''

  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === quote) {
      const end = endOfString(text, at)
      if (nameExpected) {
        name = nameIn(text, at, end)
        names = withName(names as Names, name, at)
        nameExpected = false
      }
      at = end
    } else if (code === openBrace || code === openBracket) {
      enclosing.push(names)
      names = code === openBrace ? undefined : array
      nameExpected = code === openBrace
      depth++
    } else if (code === closeBrace || code === closeBracket) {
      names = enclosing.pop()
      nameExpected = false
      depth--
    } else if (code === comma) {
      nameExpected = names !== array
    } else if (code === minus || (code >= zero && code <= nine)) {
      const end = endOfNumber(text, at)
      if (depth === 1 && names !== array) {
        record[name] = exactInteger(text.slice(at, end)) ?? record[name]
      }
      at = end - 1
    }
  }
}

function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); ; end = text.indexOf('"', end + 1)) {
    let before = end - 1
    while (text.charCodeAt(before) === backslash) before--
    if ((end - 1 - before) % 2 === 0) return end
  }
}

function endOfNumber(text: string, start: number): number {
  let end = start + 1
  while (/* digits . e E + - */ end < text.length && isNumberPart(text.charCodeAt(end))) end++
  return end
}

function isNumberPart(code: number): boolean {
  return (
    (code >= zero && code <= nine) ||
    code === 0x2e ||
    code === 0x65 ||
    code === 0x45 ||
    code === 0x2b ||
    code === minus
  )
}

function nameIn(text: string, start: number, end: number): string {
  const inner = text.slice(start + 1, end)
  return inner.includes('\\') ? (JSON.parse(text.slice(start, end + 1)) as string) : inner
}

function withName(names: Names, name: string, at: number): Names {
  if (names === undefined) return [name]
  if (Array.isArray(names) ? names.includes(name) : names.has(name)) {
    throw new SyntaxError(`Member ${JSON.stringify(name)} is given twice, again at position ${at}`)
  }
  if (!Array.isArray(names)) return names.add(name)
  if (names.length === listedNamesMax) return new Set(names).add(name)
  names.push(name)
  return names
}

/** The integer that a JSON number is, when it is one of at most 19 digits; `undefined` for every other number. */
function exactInteger(source: string): bigint | undefined {
  if (/^-?\d{1,19}$/.test(source)) return BigInt(source)
  const [, sign = '', whole = '', fraction = '', power = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(source) ?? []

  const digits = whole + fraction
  let first = 0
  while (first < digits.length && digits.charCodeAt(first) === zero) first++
  if (first === digits.length) return 0n
  let end = digits.length
  while (digits.charCodeAt(end - 1) === zero) end--

  const zeros = Number(power) - fraction.length + (digits.length - end)
  if (zeros < 0 || end - first + zeros > 19) return undefined
  return BigInt(`${sign}${digits.slice(first, end)}${'0'.repeat(zeros)}`)
}
