import { refusal } from '../errors.ts'
import { pageLimitDefault, pageLimitProblem } from '../page.ts'
import { int64Problem, isFaultless, isInt64, textProblem, type UnicodeText } from '../values.ts'
import type { PlantId } from './plant.ts'

export interface PlantPageQuery {
  /** At least 1. */
  readonly limit: number
  /** Only greater ids (keyset pagination). */
  readonly after?: PlantId
  /** Only plants with exactly this tag. */
  readonly tag?: UnicodeText
  /** The page ends with the plant at which its texts reach this size in UTF-8. At least 1. */
  readonly textBytesMax?: number
}

/**
 * Returns a query from unknown values, each optional.
 *
 * @param input `limit`: a number from 1 to `pageLimitMax`, by default `pageLimitDefault`; `after`: a plant
 *   id; `tag`: text
 * @throws DomainError `invalid-plant-query` with every fault
 */
export function parsePlantPageQuery(input: {
  limit?: unknown
  after?: unknown
  tag?: unknown
}): PlantPageQuery {
  const { limit = pageLimitDefault, after, tag } = input
  const problems = {
    limit: pageLimitProblem(limit),
    after: after === undefined || isInt64(after) ? undefined : int64Problem,
    tag: tag === undefined ? undefined : textProblem(tag),
  }
  if (!isFaultless(problems)) throw refusal('invalid-plant-query', problems)
  return { limit, ...(after !== undefined && { after }), ...(tag !== undefined && { tag }) } as PlantPageQuery
}
