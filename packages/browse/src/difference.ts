import { element } from './dom.ts'
import {
  createSign,
  invisible,
  invisibleOrSpace,
  toAbsence,
  toCode,
  toText,
  withSigns,
} from './values.ts'

/** Shows where texts differ, in the question about a conflict. */

/**
 * How many characters of a text a question shows: of the difference, before it and after
 * it. A question is the dialog in which a user compares values (`question.ts`).
 */
const partCharactersMax = 100

/**
 * Returns where two different texts differ: after their first `start` characters, and
 * before their last `endLength`.
 */
export function findDifference(a: string, b: string) {
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
  { start, endLength }: ReturnType<typeof findDifference>,
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
function createCode(text: string) {
  const [first = ''] = text
  const isBeyondAscii = first > '~'
  const mayLookAlike = isBeyondAscii && !invisibleOrSpace.test(first)
  return mayLookAlike && createSign(` ${toCode(first)}`, '')
}
