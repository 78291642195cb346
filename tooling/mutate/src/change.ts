interface Position {
  /** Counted from 1. */
  readonly line: number
  /** Counted from 1. */
  readonly column: number
}

/** The change of a mutant in a file. */
export interface Change {
  readonly location: { readonly start: Position; readonly end: Position }
  readonly replacement: string
}

/** Returns the change within its lines as one line of text: `if (a «> → >=» b) return`. */
export function describeChange(code: string, { location: { start, end }, replacement }: Change): string {
  const lines = code.split('\n').slice(start.line - 1, end.line)
  const text = lines.join('\n')
  const afterAt = text.length - (lines.at(-1) ?? '').length + end.column - 1
  const was = words(text.slice(start.column - 1, afterAt))
  const is = words(replacement)

  let head = ''
  while (was.length > 1 && is.length > 1 && was[0] === is[0]) {
    head += was.shift()
    is.shift()
  }
  let tail = ''
  while (was.length > 1 && is.length > 1 && was.at(-1) === is.at(-1)) {
    tail = was.pop() + tail
    is.pop()
  }
  const before = text.slice(0, start.column - 1).trimStart() + (head && `${head} `)
  return `${before}«${short(was)} → ${short(is)}»${tail}${text.slice(afterAt).trimEnd()}`
}

/** Each with the blank before it. */
const words = (text: string) => text.replace(/\s+/g, ' ').split(/(?= )/)

const endMax = 60

function short(parts: readonly string[]): string {
  const text = parts.join('').trim()
  return text.length <= 2 * endMax ? text : `${text.slice(0, endMax)} … ${text.slice(-endMax)}`
}
