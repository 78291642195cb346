/**
 * Parses an answer with every integer as an exact bigint.
 *
 * @throws SyntaxError
 */
export function parseExactJson(text: string): unknown {
  return reviverGetsSource() ? parseBySource(text) : parseMarked(text)
}

/** Writes plain values and bigints as one JSON object on one line. `JSON.stringify` refuses bigints. */
export function writeExactJson(members: object): string {
  const texts = Object.entries(members).map(
    ([name, value]) => `"${name}":${typeof value === 'bigint' ? value : JSON.stringify(value)}`,
  )
  return `{${texts.join()}}`
}

/** @throws TypeError if the value is not an integer that a JavaScript number holds exactly */
export function toNumber(value: unknown): number {
  const number = Number(value)
  if (typeof value === 'bigint' && Number.isSafeInteger(number)) return number
  throw new TypeError('an integer up to 2^53 is expected')
}

/** `source` is the number's text, since ES2026. */
type Reviver = (key: string, value: unknown, context?: { readonly source?: string }) => unknown
const parse = (text: string, reviver: Reviver): unknown => JSON.parse(text, reviver)

const reviverGetsSource = () => parse('1', (_key, _value, context) => context?.source) === '1'
const integer = /^-?\d+$/

function parseBySource(text: string): unknown {
  return parse(text, (_key, value, { source = '' } = {}) => (integer.test(source) ? BigInt(source) : value))
}

/** Cannot begin a plant's text, which has no U+0000. */
const mark = '\0'
// Also matches an unterminated text: searching for its end from each quotation mark would take quadratic
// time.
const stringsAndNumbers = /"[^"\\]*(?:\\.[^"\\]*)*"?|-?\d[\d.eE+-]*/g

/** For engines without `source`: integers become marked texts, and then bigints. */
function parseMarked(text: string): unknown {
  const marked = text.replace(stringsAndNumbers, token =>
    integer.test(token) ? JSON.stringify(mark + token) : token,
  )
  return parse(marked, (_key, value) => {
    if (typeof value !== 'string' || !value.startsWith(mark)) return value
    const digits = value.slice(mark.length)
    return integer.test(digits) ? BigInt(digits) : value
  })
}
