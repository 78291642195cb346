import { int64Problem, isInt64 } from '@plant-store/client/page'
import { element } from './dom.ts'
import { writeJsonRecord } from './json.ts'

/** Shows values, and reads the integers that a user types. */

/** How many characters of a text a cell shows. */
const cellCharactersMax = 200

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
  // A surrogate pair is one character.
  const start = [...text.slice(0, 2 * countMax)].slice(0, countMax).join('')
  const rest = text.slice(start.length)
  const restCount = rest.replaceAll(/[\udc00-\udfff]/g, '').length
  const more = createSign(`… ${restCount.toLocaleString('en')} more`, rest)
  return element('bdi', {}, ...withSigns(start, invisible), rest !== '' && more)
}

/** Returns the sign of a value that has no text to show. */
export function toAbsence(text: string | undefined): HTMLElement {
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
export const invisible = RegExp(`(\\r\\n|(?!${spelling})[${hidden}])`, 'u')
export const invisibleOrSpace = RegExp(String.raw`(\r\n|[${hidden}\p{Z}])`, 'u')

/** Returns a text with a sign in place of each character that the expression matches. */
export function withSigns(text: string, replaced: RegExp) {
  return text.split(replaced).flatMap<Node | string>((part, index) => {
    const isMatch = index % 2 === 1
    if (!isMatch) {
      return part
    }
    // A line may break after a sign, as after a space.
    return [createSign(signs[part] ?? toCode(part), part), element('wbr')]
  })
}

const signs: Readonly<Record<string, string>> = {
  '\r\n': ' ↵ ',
  '\r': ' ↵ ',
  '\n': ' ↵ ',
  '\t': ' ⇥ ',
  ' ': '·',
}

export function toCode(character: string): string {
  const code = Number(character.codePointAt(0))
  return `U+${code.toString(16).toUpperCase().padStart(4, '0')}`
}

/** Returns the integer that a user has typed, or `undefined` if it is no id. */
export function readInteger(text: string): bigint | undefined {
  const digits = text.trim()
  if (!/^(0|-?[1-9]\d{0,18})$/.test(digits)) {
    return undefined
  }
  const integer = BigInt(digits)
  return isInt64(integer) ? integer : undefined
}

/** Returns what is wrong with a text for which `readInteger` returns `undefined`. */
export function integerProblem(text: string): string {
  if (/[^\d-]/.test(text.trim())) {
    return 'takes digits and a minus sign only'
  }
  return int64Problem
}
