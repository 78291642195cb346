import { element } from './dom.ts'

/** How values are shown and typed. */

/** How many characters of a text a cell shows. */
const shownMax = 200
/** How many characters a question shows before and after the first difference of two texts. */
const contextMax = 100

/** Returns the text of a value. It is `undefined` for an absent one. */
export function toText(value: unknown): string | undefined {
  if (value === undefined) {
    return undefined
  }
  if (typeof value !== 'object') {
    return String(value)
  }
  return JSON.stringify(value, (_name, part) =>
    typeof part === 'bigint' ? String(part) : part,
  )
}

/** Returns what a cell shows of a value: the start of a long text, and signs for what is invisible. */
export function toCell(value: unknown): HTMLElement {
  const text = toText(value)
  if (text === undefined || text === '') {
    return toAbsence(text)
  }
  const start = text.slice(0, wholeCharacters(text, shownMax))
  const more = countCharacters(text) - countCharacters(start)
  const rest = more === 0 ? [] : [createSign(`… ${more.toLocaleString('en')} more`)]
  return element('bdi', {}, ...withSigns(start), ...rest)
}

function toAbsence(text: string | undefined): HTMLElement {
  return text === undefined ? createSign('–') : createSign('(empty)')
}

/** Returns a sign in place of a text. It looks different from a text of the same characters. */
function createSign(text: string): HTMLElement {
  return element('i', {}, text)
}

/** Returns an index of at most so many characters, never within a surrogate pair. */
function wholeCharacters(text: string, charactersMax: number): number {
  const start = text.slice(0, 2 * charactersMax)
  return [...start].slice(0, charactersMax).join('').length
}

function countCharacters(text: string): number {
  const pairs = text.match(/[\ud800-\udbff][\udc00-\udfff]/g) ?? []
  return text.length - pairs.length
}

const invisible = /(\r\n|[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}])/u

function withSigns(text: string): readonly (Node | string)[] {
  const parts = text.split(new RegExp(invisible, 'gu'))
  // Every second part is one that the expression has matched.
  return parts.map((part, index) => (index % 2 === 0 ? part : createSign(toSign(part))))
}

function toSign(character: string): string {
  const sign = { '\r\n': ' ↵ ', '\r': ' ↵ ', '\n': ' ↵ ', '\t': ' ⇥ ', ' ': '·' }[
    character
  ]
  return sign ?? toCode(character)
}

function toCode(character: string): string {
  const hexadecimal = (character.codePointAt(0) ?? 0).toString(16).toUpperCase()
  return `U+${hexadecimal.padStart(4, '0')}`
}

/** Where two texts differ: after `start` characters, and before the last `endLength`. */
export interface Difference {
  readonly start: number
  readonly endLength: number
}

/** Returns where two texts differ, which must not be the same. */
export function findDifference(a: string, b: string): Difference {
  const lengthMin = Math.min(a.length, b.length)
  let start = 0
  while (start < lengthMin && a[start] === b[start]) {
    start++
  }
  if (isLowSurrogate(a, start) || isLowSurrogate(b, start)) {
    start--
  }
  let endLength = 0
  while (endLength < lengthMin - start && a.at(-1 - endLength) === b.at(-1 - endLength)) {
    endLength++
  }
  if (
    isLowSurrogate(a, a.length - endLength) ||
    isLowSurrogate(b, b.length - endLength)
  ) {
    endLength--
  }
  return { start, endLength }
}

function isLowSurrogate(text: string, index: number): boolean {
  return /^[\udc00-\udfff]$/.test(text.charAt(index))
}

/**
 * Returns what a question shows of a text: its part around the difference. In the difference every space, tab and line
 * break has a sign, because two texts must look different if they are.
 */
export function toExcerpt(value: unknown, difference: Difference): HTMLElement {
  const text = toText(value)
  if (text === undefined || text === '') {
    return toAbsence(text)
  }
  const { start, endLength } = difference
  const end = Math.max(start, text.length - endLength)
  const before = text.slice(0, start)
  const beforeShown = [...before.slice(-2 * contextMax)].slice(-contextMax).join('')
  const within = text.slice(start, end)
  const withinShown = within.slice(0, wholeCharacters(within, contextMax))
  const after = text.slice(end)
  const afterLength = withinShown === within ? wholeCharacters(after, contextMax) : 0
  const isCutBefore = beforeShown !== before
  const isCutAfter = end + afterLength < text.length || withinShown !== within
  return element(
    'bdi',
    {},
    ...(isCutBefore ? [createSign('… ')] : []),
    ...withSigns(beforeShown),
    element('mark', {}, ...withAllSigns(withinShown)),
    ...withSigns(after.slice(0, afterLength)),
    ...(isCutAfter ? [createSign(' …')] : []),
  )
}

/** Returns a text with signs also for spaces, and the code of the first character if it may look like another one. */
function withAllSigns(text: string): readonly (Node | string)[] {
  const parts = text.split(/(\r\n|[\p{Z}\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}])/u)
  // A line may break after a sign, as after a space.
  const nodes = parts.flatMap((part, index): readonly (Node | string)[] =>
    index % 2 === 0 ? [part] : [createSign(toSign(part)), element('wbr')],
  )
  const [first = ''] = parts[0] ?? ''
  const mayLookAlike = first > '~'
  return mayLookAlike ? [...nodes, createSign(` ${toCode(first)}`)] : nodes
}

/** The integers that the interface takes. */
export interface IntegerBounds {
  readonly minimum: bigint
  readonly maximum: bigint
}

/** Returns the integer that is typed, or `undefined`. */
export function readInteger(
  text: string,
  { minimum, maximum }: IntegerBounds,
): bigint | undefined {
  const trimmed = text.trim()
  if (!/^(0|-?[1-9]\d{0,18})$/.test(trimmed)) {
    return undefined
  }
  const integer = BigInt(trimmed)
  return integer >= minimum && integer <= maximum ? integer : undefined
}

/** Returns what is wrong with a text that is no integer. */
export function integerProblem(
  text: string,
  { minimum, maximum }: IntegerBounds,
): string {
  if (/[^\d-]/.test(text.trim())) {
    return 'takes digits and a minus sign only'
  }
  return `must be an integer from ${minimum} to ${maximum}`
}
