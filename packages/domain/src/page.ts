import { type Identified, textBytes } from './values.ts'

/** The largest number of items on one page. */
export const pageLimitMax = 1000
export const pageLimitDefault = 100

/** Returns why the value is not a limit of a page, or `undefined` if it is one. */
export function pageLimitProblem(value: unknown): string | undefined {
  const isLimit =
    typeof value === 'number' &&
    Number.isInteger(value) &&
    value >= 1 &&
    value <= pageLimitMax
  if (isLimit) {
    return undefined
  }
  return `must be an integer from 1 to ${pageLimitMax}`
}

/** Asks for a part of a list. */
export interface PageQuery<Item extends Identified> {
  /** How many items the page has at most. At least 1. */
  readonly limit: number
  /** The page has only greater ids (keyset pagination). */
  readonly after?: Item['id']
  /**
   * The page ends with the item at which its texts reach this size in UTF-8. At least 1.
   */
  readonly textBytesMax?: number
}

export interface Page<Item extends Identified> {
  readonly items: readonly Item[]
  /** The `after` of the next page. Absent on the last page. */
  readonly next?: Item['id']
  /** The number of items in the whole list. Absent unless the query asked for it. */
  readonly total?: Total
}

/** A number of items, exact up to `totalMax`. */
export type Total = number | `${typeof totalMax}+`
export const totalMax = 10_000

/**
 * Reads a page. The repository must return `limit` items unless the list ends or the
 * texts reach `textBytesMax`.
 */
export async function readPage<
  Item extends Identified,
  Query extends Omit<PageQuery<Item>, 'after'>,
>(
  query: Query,
  readItems: (query: Query) => Promise<readonly Item[]>,
): Promise<Page<Item>> {
  const { limit, textBytesMax = Number.POSITIVE_INFINITY } = query
  // One more than the limit shows that there is a next page, without counting.
  const rows = await readItems({ ...query, limit: limit + 1 })
  const items = rows.slice(0, limit)
  const last = items.at(-1)

  // Most pages are full, and need no count of their bytes.
  const hasNext = rows.length > limit || bytesOf(rows) >= textBytesMax
  if (last === undefined || !hasNext) {
    return { items }
  }
  return { items, next: last.id }
}

function bytesOf(items: readonly object[]) {
  return items.reduce<number>((sum, item) => sum + textBytes(item), 0)
}
