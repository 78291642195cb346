import type { PageGiven } from '../statements/dialect.ts'
import type { Page, Statement } from '../statements/statement.ts'

export interface BoundedPage extends PageGiven {
  /** The size of all texts in UTF-8 at which the page ends. */
  readonly textBytesMax: number
}

/** How a database without bounds of its own runs a statement. */
export interface PageSource {
  all(statement: Statement, given: object): readonly Row[]
  iterate(statement: Statement, given: object): Iterable<Row>
}

type Row = object

/**
 * Returns the rows of a page up to the one at which their texts reach `textBytesMax`. Row by row takes twice as long, so
 * only if a text is longer than its share.
 */
export function readPage(page: Page, given: BoundedPage, { all, iterate }: PageSource): readonly Row[] {
  const { texts, guarded } = page
  const share = Math.floor(given.textBytesMax / (given.limit * texts.length))
  if (guarded === null) return within(given.textBytesMax, texts, iterate(page, given))
  const rows = all(guarded, { ...given, textBytesMax: share })
  if (!rows.some(row => texts.some(text => isGap(row, text)))) return rows
  return within(given.textBytesMax, texts, iterate(page, given))
}

const textOf = (row: Row, text: string) => (row as Record<string, unknown>)[text]
const isGap = (row: Row, text: string) => typeof textOf(row, text) === 'bigint'

function within(textBytesMax: number, texts: readonly string[], page: Iterable<Row>): readonly Row[] {
  const rows: Row[] = []
  let bytes = 0
  for (const row of page) {
    rows.push(row)
    for (const text of texts) bytes += Buffer.byteLength(`${textOf(row, text) ?? ''}`)
    if (bytes >= textBytesMax) break
  }
  return rows
}
