/** How values are shown and typed. */

const shownMax = 200

/** Returns the text of a cell: the start of a long text, and its invisible characters by a sign or their code. */
export function toCell(value: unknown): string {
  if (value === undefined) {
    return '–'
  }
  if (value === '') {
    return '“”'
  }
  if (typeof value !== 'string') {
    return typeof value === 'bigint' ? String(value) : JSON.stringify(value)
  }
  const start = [...value.slice(0, 2 * shownMax)].slice(0, shownMax).join('')
  const rest = value.slice(start.length)
  const more = rest.length - (rest.match(/[\ud800-\udbff]/g)?.length ?? 0)
  const shown = start
    .replaceAll(/\r\n|[\n\r]/g, ' ↵ ')
    .replaceAll('\t', ' ⇥ ')
    .replaceAll(/[\p{Cc}\p{Bidi_Control}\u2028\u2029\ufeff]/gu, toCode)
  return more === 0 ? shown : `${shown}… ${more.toLocaleString('en')} more`
}

const toCode = (character: string) =>
  `U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`

/** An integer that the interface takes. */
export interface IntegerBounds {
  readonly minimum: bigint
  readonly maximum: bigint
}

/** Returns the integer that is typed, or `undefined`. */
export function readInteger(
  text: string,
  { minimum, maximum }: IntegerBounds,
): bigint | undefined {
  if (!/^(0|-?[1-9]\d{0,18})$/.test(text)) {
    return undefined
  }
  const integer = BigInt(text)
  return integer >= minimum && integer <= maximum ? integer : undefined
}

export const integerProblem = ({ minimum, maximum }: IntegerBounds) =>
  `must be an integer from ${minimum} to ${maximum}`
