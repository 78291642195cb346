import { refusal } from './errors.ts'
import { isPlantId, type PlantId, type PlantText, plantIdProblem, textProblem } from './plant.ts'

export interface PlantPageQuery {
  /** At least 1. */
  readonly limit: number
  /** Only greater ids (keyset pagination). */
  readonly after?: PlantId
  /** Only plants with exactly this tag. */
  readonly tag?: PlantText
  /** The page ends with the plant at which its texts reach this size in UTF-8. At least 1. */
  readonly textBytesMax?: number
}

export const pageLimitMax = 1000
export const pageLimitDefault = 100

/**
 * Returns a query from unknown values, each optional.
 *
 * @param input `limit`: a number from 1 to {@link pageLimitMax}, by default {@link pageLimitDefault}; `after`: a plant
 *   id; `tag`: text
 * @throws DomainError `invalid-plant-query` with every fault
 */
export function parsePlantPageQuery(input: {
  limit?: unknown
  after?: unknown
  tag?: unknown
}): PlantPageQuery {
  const { limit = pageLimitDefault, after, tag } = input
  const isLimit = Number.isInteger(limit) && (limit as number) >= 1 && (limit as number) <= pageLimitMax
  const problems = {
    limit: isLimit ? undefined : `must be an integer from 1 to ${pageLimitMax}`,
    after: after === undefined || isPlantId(after) ? undefined : plantIdProblem,
    tag: tag === undefined ? undefined : textProblem(tag),
  }
  if (Object.values(problems).some(Boolean)) throw refusal('invalid-plant-query', problems)
  const filters = { ...(after !== undefined && { after }), ...(tag !== undefined && { tag }) }
  return { limit, ...filters } as PlantPageQuery
}
