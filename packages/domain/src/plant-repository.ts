import type { Plant, PlantId, PlantText } from './plant.ts'
import type { PlantVersion, VersionedPlant } from './plant-version.ts'

/**
 * Where plants are kept: the port that a persistence adapter fills.
 *
 * A promise of a change resolves once the change is durable (a crash right after loses nothing), and rejects with
 * DomainError `store-busy` (nothing was changed) or `store-unavailable`. Changes of one id take effect one by one.
 * `plantRepositoryContract` in `@plant-store/domain/testing` is this text as cases that any adapter can run.
 *
 * Within a major version a new ability is an optional method here; the next major version requires it.
 */
export interface PlantRepository {
  /** Never overwrites: of several inserts of one id, racing or not, exactly one is `'inserted'`. */
  insert(plant: Plant): Promise<'inserted' | 'id-taken'>
  /** Does the same as an `insert` of each of these, in their order; an adapter without it has them inserted one by one. */
  insertAll?(plants: readonly Plant[]): Promise<readonly ('inserted' | 'id-taken')[]>
  find(id: PlantId): Promise<VersionedPlant | undefined>
  /** In ascending numeric order of the ids: exactly `limit` plants if that many exist, but for `textBytesMax`. */
  page(query: PlantPageQuery): Promise<readonly Plant[]>
  /** Creates or replaces. Resolves to the new version, also where the plant was the same before. */
  save(plant: Plant): Promise<PlantVersion>
  /**
   * Saves the plant where the stored one has the expected version, or with `undefined` where there is none. Resolves to
   * the new version; to `undefined` when nothing was changed. Of several such changes of one state, racing or not, at
   * most one is made.
   */
  saveIf(plant: Plant, expected: PlantVersion | undefined): Promise<PlantVersion | undefined>
  /** Resolves to whether there was such a plant. */
  remove(id: PlantId): Promise<boolean>
  /** Resolves to whether there was a plant of this version, and is none now. */
  removeIf(id: PlantId, expected: PlantVersion): Promise<boolean>
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
