/**
 * Reads an answer without rounding: an `id` written as an integer is a bigint, exact from its digits.
 *
 * @throws SyntaxError
 */
export function parseExactJson(text: string): unknown {
  return tellsSource() ? parseBySource(text) : parseMarked(text)
}

/** What a reviver is told of a number, since ES2026. */
type Reviver = (key: string, value: unknown, context?: { readonly source?: string }) => unknown
const parse = (text: string, reviver: Reviver): unknown => JSON.parse(text, reviver)

const tellsSource = () => parse('1', (_key, _value, context) => context?.source) === '1'
const integer = /^-?\d+$/

function parseBySource(text: string): unknown {
  return parse(text, (key, value, { source = '' } = {}) =>
    key === 'id' && integer.test(source) ? BigInt(source) : value,
  )
}

/** Begins no text that a plant can have: they are without U+0000. */
const mark = '\0'
// A text without its end is matched too, or looking for the end from each quotation mark in it takes quadratic time.
const stringsAndNumbers = /"[^"\\]*(?:\\.[^"\\]*)*"?|-?\d[\d.eE+-]*/g

/** For engines that don't tell: integers become marked texts, and those bigints. */
function parseMarked(text: string): unknown {
  const marked = text.replace(stringsAndNumbers, token =>
    integer.test(token) ? JSON.stringify(mark + token) : token,
  )
  return parse(marked, (key, value) => {
    if (typeof value !== 'string' || !value.startsWith(mark)) return value
    const digits = value.slice(mark.length)
    if (!integer.test(digits)) return value
    return key === 'id' ? BigInt(digits) : Number(digits)
  })
}
