import type { Plant } from '@plant-store/domain'
import { parseJsonRecord } from '@plant-store/json'
import { decode, type Entry, judge, type ReadEntries, tooLong } from './lines.ts'

/** One JSON object a line, as POST /plants takes them; lines of nothing but blanks are passed over. */
export const readNdjson: ReadEntries = async function* (pieces, lineBytesMax) {
  let line = 1
  for await (const piece of pieces) {
    if ('beginning' in piece) {
      yield [tooLong(line++, piece, lineBytesMax)]
      continue
    }
    const { text, isBytes } = decode(piece)
    const entries: Entry[] = []
    for (let at = 0; at < text.length; line++) {
      const found = text.indexOf('\n', at)
      const end = found === -1 ? text.length : found
      const raw = text.slice(at, text[end - 1] === '\r' ? Math.max(at, end - 1) : end)
      at = end + 1
      if (raw.trim() !== '') entries.push(judge(line, raw, { isBytes, lineBytesMax }, parseJsonRecord))
    }
    yield entries
  }
}

/** Exact whatever the id, and always the same for the same plant. */
export function writeNdjson(plants: readonly Plant[]): string {
  let text = ''
  for (const { id, name, tag } of plants) {
    text += `{"id":${id},"name":${JSON.stringify(name)}`
    text += tag === undefined ? '}\n' : `,"tag":${JSON.stringify(tag)}}\n`
  }
  return text
}
