import { type Identified, textBytes } from './values.ts'

/** Of the entities on one page. */
export const pageLimitMax = 1000
export const pageLimitDefault = 100

/** Returns why the value is not a limit of a page, or `undefined` if it is one. */
export function pageLimitProblem(value: unknown): string | undefined {
  const isLimit =
    typeof value === 'number' &&
    Number.isInteger(value) &&
    value >= 1 &&
    value <= pageLimitMax
  return isLimit ? undefined : `must be an integer from 1 to ${pageLimitMax}`
}

/** The part of a list that is asked for. */
export interface PageQuery<Item extends Identified> {
  /** At least 1. */
  readonly limit: number
  /** Only greater ids (keyset pagination). */
  readonly after?: Item['id']
  /** The page ends with the item at which its texts reach this size in UTF-8. At least 1. */
  readonly textBytesMax?: number
}

export interface Page<Item extends Identified> {
  readonly items: readonly Item[]
  /** The `after` of the next page. Absent on the last page. */
  readonly next?: Item['id']
  /** Of the whole list, if it was asked for. */
  readonly total?: Total
}

/** A number of entities, exact up to `totalMax`. */
export type Total = number | `${typeof totalMax}+`
export const totalMax = 10_000

/** Reads a page, of which a repository may return less than `limit` only if there is no more or `textBytesMax` is reached. */
export async function readPage<
  Item extends Identified,
  Query extends Omit<PageQuery<Item>, 'after'>,
>(query: Query, read: (query: Query) => Promise<readonly Item[]>): Promise<Page<Item>> {
  const { limit, textBytesMax = Number.POSITIVE_INFINITY } = query
  // One more than the limit shows that there is a next page, without counting.
  const found = await read({ ...query, limit: limit + 1 })
  const items = found.slice(0, limit)
  const last = items.at(-1)
  const bytes = () => found.reduce((sum, item) => sum + textBytes(item), 0)
  const isCut = found.length > limit || bytes() >= textBytesMax
  return last !== undefined && isCut ? { items, next: last.id } : { items }
}
