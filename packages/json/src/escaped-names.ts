/** A name written with a backslash, and its position with the quotation marks. */
export interface EscapedName {
  readonly name: string
  readonly start: number
  readonly end: number
}

/**
 * Parses with stand-ins for the escaped names. V8 can mistake an escaped name for one from an earlier text
 * (github.com/nodejs/node/issues/63785), so one sender could decide how another sender's text is read.
 */
export function readWithPlainNames(
  text: string,
  escapedNames: readonly EscapedName[],
): unknown {
  let mark: string
  do {
    mark = Math.random().toString(36)
  } while (text.includes(mark))
  let plain = ''
  let rest = 0
  for (const [index, { start, end }] of escapedNames.entries()) {
    plain += `${text.slice(rest, start)}"${mark}${index}"`
    rest = end
  }
  const reread = JSON.parse(plain + text.slice(rest)) as Record<string, unknown>

  const objects = [reread]
  for (const object of objects) {
    for (const [key, value] of Object.entries(object)) {
      if (typeof value === 'object' && value !== null) {
        objects.push(value as Record<string, unknown>)
      }
      if (!key.startsWith(mark)) {
        continue
      }
      delete object[key]
      const { name } = escapedNames[Number(key.slice(mark.length))] as EscapedName
      // An assignment to `__proto__` would set the prototype.
      Object.defineProperty(object, name, {
        value,
        writable: true,
        enumerable: true,
        configurable: true,
      })
    }
  }
  return reread
}
