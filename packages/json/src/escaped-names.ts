/** A name written with a backslash, and its position with the quotation marks. */
export interface EscapedName {
  readonly name: string
  readonly start: number
  readonly end: number
}

/**
 * Parses a text with stand-ins for its escaped names, and puts the names back afterwards.
 * V8 can mistake an escaped name for one from an earlier text
 * (github.com/nodejs/node/issues/63785), so one sender could decide how another sender's
 * text is read.
 */
export function readWithPlainNames(
  text: string,
  escapedNames: readonly EscapedName[],
): unknown {
  const mark = markAbsentFrom(text)
  const reread: unknown = JSON.parse(withStandIns(text, escapedNames, mark))
  const nameByStandIn = new Map(
    escapedNames.map(({ name }, index) => [`${mark}${index}`, name]),
  )

  const values = [reread]
  // The list grows while it is walked.
  for (const value of values) {
    if (!isObject(value)) {
      continue
    }
    for (const [key, member] of Object.entries(value)) {
      values.push(member)
      const name = nameByStandIn.get(key)
      if (name !== undefined) {
        delete value[key]
        // An assignment to `__proto__` would set the prototype.
        Object.defineProperty(value, name, {
          value: member,
          writable: true,
          enumerable: true,
          configurable: true,
        })
      }
    }
  }
  return reread
}

function markAbsentFrom(text: string) {
  let mark: string
  do {
    mark = Math.random().toString(36)
  } while (text.includes(mark))
  return mark
}

/** Replaces each escaped name by the mark and its index. */
function withStandIns(text: string, escapedNames: readonly EscapedName[], mark: string) {
  let plain = ''
  let copiedUntil = 0
  for (const [index, { start, end }] of escapedNames.entries()) {
    plain += `${text.slice(copiedUntil, start)}"${mark}${index}"`
    copiedUntil = end
  }
  return plain + text.slice(copiedUntil)
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
