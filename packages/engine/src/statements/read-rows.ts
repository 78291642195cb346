import {
  type PageBounds,
  type ReadStatement,
  type Statement,
  valuesOf,
} from './statement.ts'

/** Returns a statement as SQLite has prepared it. */
type Prepare = (statement: Statement) => {
  all(values: readonly unknown[]): unknown[]
  iterate(values: readonly unknown[]): Iterable<unknown>
}

/**
 * Returns the rows of a statement, and those of a page up to the one at which their texts reach `textBytesMax`. Row by row
 * takes twice as long, so only if a text is longer than its share.
 */
export function readRows(
  statement: ReadStatement,
  given: object,
  prepare: Prepare,
): readonly object[] {
  // A statement that reads returns rows.
  const all = (statement: Statement, given: object) =>
    prepare(statement).all(valuesOf(statement, given)) as object[]
  if (statement.bound === undefined) {
    return all(statement, given)
  }
  const { texts, guarded } = statement.bound
  // The compiler has compared it with the parameters of the page.
  const { limit, textBytesMax } = given as PageBounds
  const rows = all(guarded, {
    ...given,
    textBytesMax: Math.floor(textBytesMax / (limit * texts.length)),
  })
  if (!hasGap(rows, texts)) {
    return rows
  }
  const page = prepare(statement).iterate(valuesOf(statement, given)) as Iterable<object>
  return within(textBytesMax, texts, page)
}

function hasGap(rows: readonly object[], texts: readonly string[]): boolean {
  for (const row of rows) {
    for (const text of texts) {
      if (typeof textOf(row, text) === 'bigint') {
        return true
      }
    }
  }
  return false
}

const textOf = (row: object, text: string) => (row as Record<string, unknown>)[text]

function within(
  textBytesMax: number,
  texts: readonly string[],
  page: Iterable<object>,
): readonly object[] {
  const rows: object[] = []
  let bytes = 0
  for (const row of page) {
    rows.push(row)
    for (const text of texts) {
      bytes += Buffer.byteLength(`${textOf(row, text) ?? ''}`)
    }
    if (bytes >= textBytesMax) {
      break
    }
  }
  return rows
}
