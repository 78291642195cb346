import { refusal } from '../errors.ts'
import {
  type PageQuery,
  pageLimitDefault,
  pageLimitProblem,
  type Total,
} from '../page.ts'
import {
  int64Problem,
  isFaultless,
  isInt64,
  textProblem,
  type UnicodeText,
} from '../values.ts'
import type { Plant, PlantId } from './plant.ts'

export interface PlantPageQuery extends PageQuery<Plant> {
  /** Only plants with exactly this tag. */
  readonly tag?: UnicodeText
}

/** Looks for a part of a name, without an index: at a bounded number of plants a page. */
export interface PlantSearch extends PlantPageQuery {
  /** A part of the name, with A to Z equal to a to z. 1 to `searchedTextMax` characters. */
  readonly name_contains: UnicodeText
  /** The plants to look at, whether they match or not. At least 1. */
  readonly lookAtMax: number
}

export interface PlantCount extends PlantPageQuery {
  /** Counting ends here. */
  readonly countMax: number
}

/** What a client asks of a list. */
export interface PlantListQuery
  extends PlantPageQuery,
    Partial<Pick<PlantSearch, 'name_contains'>> {
  /** Whether to count the whole list. */
  readonly count?: boolean
}

export interface PlantPage {
  /** In ascending numeric order of id. */
  readonly plants: readonly Plant[]
  /** The `after` of the next page. Absent on the last page. */
  readonly next?: PlantId
  /** Of the whole list, if it was asked for. */
  readonly total?: Total
}

/** Takes SQLite up to 5 ms, in which it keeps a thread busy. */
export const searchedPlantsMax = 4_000
/** The plants of a tag are far apart on the disk. */
export const searchedPlantsOfTagMax = 1_000
/** The time that a search takes grows with it. */
export const searchedTextMax = 100

/**
 * Returns a query from unknown values, each optional.
 *
 * @param input `limit`: a number from 1 to `pageLimitMax`, by default `pageLimitDefault`; `after`: a plant
 *   id; `tag`: text; `name_contains`: text of 1 to `searchedTextMax` characters; `count`: a boolean, not `true` with
 *   `name_contains`
 * @throws DomainError `invalid-query` with every fault
 */
export function parsePlantPageQuery(input: {
  limit?: unknown
  after?: unknown
  tag?: unknown
  name_contains?: unknown
  count?: unknown
}): PlantListQuery {
  const { limit = pageLimitDefault, after, tag, name_contains, count } = input
  const problems = {
    limit: pageLimitProblem(limit),
    after: after === undefined || isInt64(after) ? undefined : int64Problem,
    tag: tag === undefined ? undefined : textProblem(tag),
    name_contains:
      name_contains === undefined ? undefined : searchedTextProblem(name_contains),
    count: count === undefined ? undefined : countProblem(count, name_contains),
  }
  if (!isFaultless(problems)) {
    throw refusal('invalid-query', problems)
  }
  const given = Object.entries({ after, tag, name_contains, count }).filter(
    ([, value]) => value !== undefined,
  )
  return { limit, ...Object.fromEntries(given) } as PlantListQuery
}

function searchedTextProblem(value: unknown): string | undefined {
  const isTooLong = typeof value === 'string' && [...value].length > searchedTextMax
  return value === '' || isTooLong
    ? `must have 1 to ${searchedTextMax} characters`
    : textProblem(value)
}

function countProblem(value: unknown, nameContains: unknown): string | undefined {
  if (typeof value !== 'boolean') {
    return 'must be true or false'
  }
  return value && nameContains !== undefined
    ? 'cannot be used with name_contains'
    : undefined
}
