import type { Version } from '../version.ts'
import type { Plant, PlantId, SavedPlant, VersionedPlant } from './plant.ts'
import type { PlantCount, PlantPage, PlantPageQuery, PlantSearch } from './query.ts'

/**
 * The port where plants are stored.
 *
 * The promise of a change resolves once the change is durable: a crash right after it
 * loses nothing. It rejects with DomainError `store-busy` (nothing was changed) or
 * `store-unavailable`.
 *
 * Changes of one id take effect one after another, those of one caller in the order of
 * its calls, even if it does not await them. A pool of connections breaks this: changes
 * of one id then need one connection, or a queue. `insertAll` and `saveAll` have no such
 * order: await what must come first.
 *
 * `plantRepositoryContract` of `@plant-store/domain/testing` tests each promise of this
 * port.
 */
export interface PlantRepository {
  /**
   * Never overwrites: of several inserts of one id, racing or not, exactly one is
   * `'inserted'`.
   */
  insert(plant: Plant): Promise<'inserted' | 'id-taken'>
  /** Does the same as one `insert` for each plant, in order. */
  insertAll(plants: readonly Plant[]): Promise<readonly ('inserted' | 'id-taken')[]>
  find(id: PlantId): Promise<VersionedPlant | undefined>
  /**
   * Resolves to plants in ascending numeric order of id: `limit` of them if that many
   * exist and `textBytesMax` allows.
   */
  page(query: PlantPageQuery): Promise<readonly Plant[]>
  /**
   * Resolves to the same page as `page`, and the number of plants in the whole list,
   * both as of one moment.
   */
  pageCounted(query: PlantCount): Promise<CountedPlants>
  /**
   * Resolves to those of the next `lookAtMax` plants of the list whose name contains the
   * text, as far as `limit` and `textBytesMax` allow. It may look at fewer if names are
   * long, but at least at one. Without `next` there are no more.
   */
  search(query: PlantSearch): Promise<PlantPage>
  /**
   * Creates or replaces. Resolves to the new version, even if the plant is the same as
   * before, and to which of both it did. Of several saves of an id that is free, racing
   * or not, exactly one creates.
   */
  save(plant: Plant): Promise<SavedPlant>
  /** Does the same as one `save` for each plant, in order. */
  saveAll(plants: readonly Plant[]): Promise<readonly SavedPlant[]>
  /**
   * Saves the plant if the stored one has the expected version, or with `undefined` if
   * none is stored. Resolves to the new version, or to `undefined` if nothing was
   * changed. Of several such changes of one version, racing or not, at most one is made.
   */
  saveIf(plant: Plant, expected: Version | undefined): Promise<Version | undefined>
  /** Resolves to whether the plant existed. */
  remove(id: PlantId): Promise<boolean>
  /** Removes the plant if it has this version. Resolves to whether it did. */
  removeIf(id: PlantId, expected: Version): Promise<boolean>
}

export interface CountedPlants {
  readonly plants: readonly Plant[]
  /** The number of plants in the whole list, at most `countMax`. */
  readonly total: number
}
