import { element } from './dom.ts'
import { writeJsonRecord } from './json.ts'

/** Shows values, and reads the integers that a user types. */

/** How many characters of a text a cell shows. */
const cellCharactersMax = 200
/**
 * How many characters of a text a question shows: of the difference, before it and after
 * it. A question is the dialog in which a user compares values (`question.ts`).
 */
const partCharactersMax = 100

/** Returns the text of a value, or `undefined` if it is absent. */
export function toText(value: unknown): string | undefined {
  if (value === undefined) {
    return undefined
  }
  return typeof value === 'object' ? writeJsonRecord(value as object) : `${value}`
}

/** Returns what a cell shows: the start of a value, with signs for what is invisible. */
export function toCell(value: unknown, countMax = cellCharactersMax): HTMLElement {
  const text = toText(value)
  if (!text) {
    return toAbsence(text)
  }
  const start = firstCharacters(text, countMax)
  const rest = text.slice(start.length)
  const restCount = rest.replaceAll(/[\udc00-\udfff]/g, '').length
  const more = createSign(`… ${restCount.toLocaleString('en')} more`, rest)
  return element('bdi', {}, ...withSigns(start, invisible), rest !== '' && more)
}

/** Returns the sign of a value that has no text to show. */
function toAbsence(text: string | undefined): HTMLElement {
  return createSign(text === undefined ? '–' : '(empty)', '')
}

/**
 * Returns a sign, which looks different from a text of the same characters.
 *
 * @param stored the part of the stored text that it stands for
 */
export function createSign(text: string, stored: string): HTMLElement {
  const sign = element('i', {}, text)
  // `clipboard.ts` copies it.
  sign.dataset['stored'] = stored
  return sign
}

/** Returns the first characters of a text. A surrogate pair is one character. */
function firstCharacters(text: string, countMax: number): string {
  const characters = [...text.slice(0, 2 * countMax)]
  return characters.slice(0, countMax).join('')
}

// Joiners between letters, variation selectors, and the tags of a flag are spelling.
const joiner = /(?<=[\p{L}\p{M}])(?:\u200c|\u200d|\u034f)(?=[\p{L}\p{M}])/u.source
const emojiJoiner = /(?<=[\p{Emoji}\p{M}])\u200d(?=\p{Extended_Pictographic})/u.source
const selector =
  /(?<=[\p{L}\p{Extended_Pictographic}])[\ufe00-\ufe0f\u{e0100}-\u{e01ef}\u180b-\u180d]/u
    .source
const keycap = /(?<=[\d#*])\ufe0f(?=\u20e3)/u.source
const flagTag = /(?<=\u{1f3f4}[\u{e0020}-\u{e007e}]*)[\u{e0020}-\u{e007f}]/u.source
const spelling = [joiner, emojiJoiner, selector, keycap, flagTag].join('|')

const hidden = String.raw`\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}`
const invisible = RegExp(`(\\r\\n|(?!${spelling})[${hidden}])`, 'u')
const invisibleOrSpace = RegExp(String.raw`(\r\n|[${hidden}\p{Z}])`, 'u')

/** Returns a text with a sign in place of each character that the expression matches. */
function withSigns(text: string, replaced: RegExp): readonly (Node | string)[] {
  const nodes: (Node | string)[] = []
  for (const [index, part] of text.split(replaced).entries()) {
    const isMatch = index % 2 === 1
    if (isMatch) {
      // A line may break after a sign, as after a space.
      nodes.push(createSign(signs[part] ?? toCode(part), part), element('wbr'))
    } else {
      nodes.push(part)
    }
  }
  return nodes
}

const signs: Readonly<Record<string, string>> = {
  '\r\n': ' ↵ ',
  '\r': ' ↵ ',
  '\n': ' ↵ ',
  '\t': ' ⇥ ',
  ' ': '·',
}

function toCode(character: string): string {
  const code = character.codePointAt(0) ?? 0
  return `U+${code.toString(16).toUpperCase().padStart(4, '0')}`
}

/**
 * Where two texts differ: after their first `start` characters, and before their last
 * `endLength`.
 */
export interface Difference {
  readonly start: number
  readonly endLength: number
}

/** Returns where two different texts differ. */
export function findDifference(a: string, b: string): Difference {
  const charactersOfA = [...a]
  const charactersOfB = [...b]
  const lengthMin = Math.min(charactersOfA.length, charactersOfB.length)
  const isEqualAt = (index: number) => charactersOfA.at(index) === charactersOfB.at(index)
  let start = 0
  while (start < lengthMin && isEqualAt(start)) {
    start++
  }
  let endLength = 0
  while (endLength < lengthMin - start && isEqualAt(-1 - endLength)) {
    endLength++
  }
  return { start, endLength }
}

/**
 * Returns what a question shows of a value: its part around the difference. Within the
 * difference every space, tab and line break has a sign, because texts that differ must
 * look different.
 *
 * @param isMarked whether the value is one of the two that differ
 */
export function toExcerpt(
  value: unknown,
  { start, endLength }: Difference,
  isMarked: boolean,
): HTMLElement {
  const text = toText(value)
  if (!text) {
    return toAbsence(text)
  }
  const characters = [...text]
  const partOf = (from: number, to?: number) => characters.slice(from, to).join('')
  // The difference may be that of two other values, both longer than this one.
  const end = Math.max(start, characters.length - endLength)
  const endShown = Math.min(end, start + partCharactersMax)
  const from = Math.max(0, start - partCharactersMax)
  const to = endShown < end ? endShown : end + partCharactersMax
  const within = partOf(start, endShown)
  const middle = withSigns(within, invisibleOrSpace)
  const marked = element('mark', {}, ...middle, createCode(within))
  const cutBefore = partOf(0, from)
  const cutAfter = partOf(to)
  return element(
    'bdi',
    {},
    cutBefore !== '' && createSign('… ', cutBefore),
    ...withSigns(partOf(from, start), invisible),
    ...(isMarked ? [marked] : middle),
    ...withSigns(partOf(endShown, to), invisible),
    cutAfter !== '' && createSign(' …', cutAfter),
  )
}

/** Returns the code of the first character if it may look like another one. */
function createCode(text: string): HTMLElement | false {
  const [first = ''] = text
  const isBeyondAscii = first > '~'
  const mayLookAlike = isBeyondAscii && !invisibleOrSpace.test(first)
  return mayLookAlike && createSign(` ${toCode(first)}`, '')
}

const int64Min = -9_223_372_036_854_775_808n
const int64Max = 9_223_372_036_854_775_807n

/** Returns the integer that a user has typed, or `undefined` if it is no id. */
export function readInteger(text: string): bigint | undefined {
  const digits = text.trim()
  if (!/^(0|-?[1-9]\d{0,18})$/.test(digits)) {
    return undefined
  }
  const integer = BigInt(digits)
  if (integer < int64Min || integer > int64Max) {
    return undefined
  }
  return integer
}

/** Returns what is wrong with a text for which `readInteger` returns `undefined`. */
export function integerProblem(text: string): string {
  if (/[^\d-]/.test(text.trim())) {
    return 'takes digits and a minus sign only'
  }
  return `must be an integer from ${int64Min} to ${int64Max}`
}
