import type { Plant, PlantId, PlantText } from './plant.ts'

/**
 * Where plants are kept: the port that a persistence adapter fills.
 *
 * A promise of a change resolves once the change is durable (a crash right after loses nothing), and rejects with
 * DomainError `store-busy` (nothing was changed) or `store-unavailable`. Changes of one id take effect one by one.
 * `plantRepositoryContract` in `@plant-store/domain/testing` is this text as cases that any adapter can run.
 */
export interface PlantRepository {
  /** Never overwrites: of several inserts of one id, racing or not, exactly one is `'inserted'`. */
  insert(plant: Plant): Promise<'inserted' | 'id-taken'>
  find(id: PlantId): Promise<Plant | undefined>
  /** In ascending numeric order of the ids: exactly `limit` plants if that many exist, but for `textBytesMax`. */
  page(query: PlantPageQuery): Promise<readonly Plant[]>
  /** Creates or replaces. */
  save(plant: Plant): Promise<void>
  /** Resolves to whether there was such a plant. */
  remove(id: PlantId): Promise<boolean>
}

export interface PlantPageQuery {
  /** The largest number of plants, 1 or more. */
  readonly limit: number
  /** Only ids above this one (the keyset of the page before). */
  readonly after?: PlantId
  /** Only plants with exactly this tag. */
  readonly tag?: PlantText
  /** The page ends with the plant at which its texts reach this size in UTF-8, 1 or more. */
  readonly textBytesMax?: number
}
