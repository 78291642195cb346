/**
 * Parses an answer with each integer `id` as an exact bigint, in a record or an array of records.
 *
 * @throws SyntaxError
 */
export function parseExactJson(text: string): unknown {
  return reviverGetsSource() ? parseBySource(text) : parseMarked(text)
}

/** `source` is the number's text, since ES2026. */
type Reviver = (key: string, value: unknown, context?: { readonly source?: string }) => unknown
const parse = (text: string, reviver: Reviver): unknown => JSON.parse(text, reviver)

const reviverGetsSource = () => parse('1', (_key, _value, context) => context?.source) === '1'
const integer = /^-?\d+$/

function parseBySource(text: string): unknown {
  return parse(text, (key, value, { source = '' } = {}) =>
    key === 'id' && integer.test(source) ? BigInt(source) : value,
  )
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
  return parse(marked, (key, value) => {
    if (typeof value !== 'string' || !value.startsWith(mark)) return value
    const digits = value.slice(mark.length)
    if (!integer.test(digits)) return value
    return key === 'id' ? BigInt(digits) : Number(digits)
  })
}
