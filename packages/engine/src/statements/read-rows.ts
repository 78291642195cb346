import type { PageGiven, ReadStatement, Statement } from './statement.ts'

/** How a database runs any statement. */
export interface RowSource {
  all(statement: Statement, given: object): readonly object[]
  iterate(statement: Statement, given: object): Iterable<object>
}

/**
 * Returns the rows of a statement, and those of a page up to the one at which their texts reach `textBytesMax`. Row by row
 * takes twice as long, so only if a text is longer than its share.
 */
export function readRows(
  statement: ReadStatement,
  given: object,
  { all, iterate }: RowSource,
): readonly object[] {
  if (statement.bound === undefined) return all(statement, given)
  const { texts, guarded } = statement.bound
  // The compiler has compared it with the parameters of the page.
  const { limit, textBytesMax } = given as PageGiven
  const rows = all(guarded, { ...given, textBytesMax: Math.floor(textBytesMax / (limit * texts.length)) })
  return hasGap(rows, texts) ? within(textBytesMax, texts, iterate(statement, given)) : rows
}

function hasGap(rows: readonly object[], texts: readonly string[]): boolean {
  for (const row of rows) for (const text of texts) if (typeof textOf(row, text) === 'bigint') return true
  return false
}

const textOf = (row: object, text: string) => (row as Record<string, unknown>)[text]

function within(textBytesMax: number, texts: readonly string[], page: Iterable<object>): readonly object[] {
  const rows: object[] = []
  let bytes = 0
  for (const row of page) {
    rows.push(row)
    for (const text of texts) bytes += Buffer.byteLength(`${textOf(row, text) ?? ''}`)
    if (bytes >= textBytesMax) break
  }
  return rows
}
