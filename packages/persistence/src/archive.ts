import { type Plant, type PlantId, plantIdMax, plantIdMin } from '@plant-store/domain'
import { type PlantRow, toPlant } from './tables.ts'

/**
 * A whole store at once, for those who carry plants in and out of it by the million: a port beside the repository's,
 * over the same plants. Every call may be made while others read and change the store.
 *
 * A promise of a change resolves once the change is durable, and everything rejects with DomainError
 * `store-unavailable`, in which case nothing of that call was kept; where a store is so far away that its last answer
 * can get lost, an adapter has an error of its own for that. `plantArchiveContract` in `@plant-store/persistence/testing` is
 * this text as cases that any adapter can run.
 */
export interface PlantArchive {
  /**
   * Loads plants in one transaction, in their order, each with its own outcome. It holds up everybody else who writes
   * for as long as it takes: give it some ten thousand plants, not a million.
   */
  load(plants: readonly Plant[], onTaken: OnTaken): Promise<readonly LoadOutcome[]>
  /** Begins a load of any number of plants that is kept whole or not at all. */
  stage(onTaken: OnTaken): Promise<StagedLoad>
  /** The store as it is at this moment, whatever is changed in it afterwards, until it is disposed of. */
  snapshot(): Promise<PlantSnapshot>
}

/** What becomes of a plant whose id another plant has. */
export type OnTaken = 'keep' | 'replace'

/** Where taken ids are replaced, `replaced` of a taken one; where they are kept, `already-there` of the same plant. */
export type LoadOutcome = 'inserted' | 'replaced' | 'already-there' | 'id-taken'

/** Plants on their way in that nobody sees yet. Disposed of before they are kept, they never were. */
export interface StagedLoad extends AsyncDisposable {
  /** The outcomes as they would be if nobody else changed the store any more; a taken id is left out of the load. */
  add(plants: readonly Plant[]): Promise<readonly LoadOutcome[]>
  /**
   * Keeps all of them in one transaction, which holds up everybody else who writes for as long as it takes.
   *
   * @returns where ids are kept and somebody took one since it was added: that id, and nothing was kept
   */
  keep(): Promise<'kept' | { readonly takenMeanwhile: PlantId }>
}

export interface PlantSnapshot extends AsyncDisposable {
  /** How many plants it holds. */
  readonly count: number
  /** All of them in ascending numeric order of the ids, a few at a time, in memory that doesn't grow with their number. */
  plants(): AsyncIterable<readonly Plant[]>
}

const snapshotPageRows = 1_000

/**
 * All plants of a snapshot, page by page along the primary key.
 *
 * @param readPage reads rows from an id on, in the order of the ids
 */
export async function* pagesOf(
  readPage: (from: bigint, rows: number) => Promise<readonly PlantRow[]>,
): AsyncGenerator<readonly Plant[]> {
  let from = plantIdMin
  while (true) {
    const rows = await readPage(from, snapshotPageRows)
    if (rows.length > 0) yield rows.map(toPlant)
    const last = rows.at(-1)?.id
    if (rows.length < snapshotPageRows || last === undefined || last === plantIdMax) return
    from = last + 1n
  }
}
