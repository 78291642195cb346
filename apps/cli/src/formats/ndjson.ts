import { parsePlant } from '@plant-store/domain'
import { parseJsonRecord, writeJsonRecord } from '@plant-store/json'
import { decode, type Entry, endOfLine, type Format, judge, withoutLineEnd } from './lines.ts'

/** One JSON object a line, as in POST /plants. */
export const ndjson: Format = {
  header: '',
  read: (pieces, lineBytesMax) =>
    readJsonLines(pieces, lineBytesMax, text => parsePlant(parseJsonRecord(text))),
  write: plants => plants.map(plant => `${writeJsonRecord(plant)}\n`).join(''),
}

/** Reads a value from each line that is not blank. */
export async function* readJsonLines<Value>(
  pieces: AsyncIterable<Buffer>,
  lineBytesMax: number,
  read: (text: string) => Value,
): AsyncGenerator<Entry<Value>[]> {
  let line = 1
  for await (const piece of pieces) {
    const { text, encoding } = decode(piece)
    const entries: Entry<Value>[] = []
    for (let at = 0; at < text.length; line++) {
      const end = endOfLine(text, at)
      const raw = withoutLineEnd(text.slice(at, end))
      at = end
      if (raw.trim() !== '') entries.push(judge(line, raw, { encoding, lineBytesMax }, read))
    }
    yield entries
  }
}
