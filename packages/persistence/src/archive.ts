import {
  type AddOptions,
  type CreateOutcome,
  type Plant,
  type PlantId,
  plantIdMax,
  plantIdMin,
} from '@plant-store/domain'
import { type PlantRow, toPlant } from './tables.ts'

/**
 * A store as a whole, to load and read millions of plants while others read and change it. A change that resolves is
 * durable. Rejects with DomainError `store-unavailable`, and then keeps nothing of the call, unless the error is an
 * OutcomeUnknownError. `plantArchiveContract` of `@plant-store/persistence/testing` tests every promise made here.
 */
export interface PlantArchive {
  /** Loads plants in order in one transaction, which blocks all other writers: pass about 10,000, not a million. */
  load(plants: readonly Plant[], onTaken: OnTaken, options?: AddOptions): Promise<readonly LoadOutcome[]>
  /** Begins a load of any number of plants, which is kept completely or not at all. */
  stage(onTaken: OnTaken, options?: AddOptions): Promise<StagedLoad>
  /** Returns the store as of now, unaffected by later changes, until it is disposed of. */
  snapshot(): Promise<PlantSnapshot>
}

/** What to do with a stored plant whose id is loaded again. */
export type OnTaken = 'keep' | 'replace'

/** For a taken id: `replaced`, or with `keep` the outcome of creating the plant. */
export type LoadOutcome = CreateOutcome | 'replaced'

/** Plants that no reader sees until they are kept. Disposal before that discards them. */
export interface StagedLoad extends AsyncDisposable {
  /** Resolves to the current outcomes. Drops plants that are `id-taken` or `already-there`. */
  add(plants: readonly Plant[]): Promise<readonly LoadOutcome[]>
  /**
   * Stores all plants in one transaction, which blocks all other writers. With `onTaken: 'keep'` an id taken since it
   * was added stops it, and nothing is kept.
   */
  keep(): Promise<'kept' | { readonly takenMeanwhile: PlantId }>
}

export interface PlantSnapshot extends AsyncDisposable {
  readonly count: number
  /** Yields all plants in ascending numeric order of id, a few at a time, in constant memory. */
  plants(): AsyncIterable<readonly Plant[]>
}

const snapshotPageRows = 1_000

/**
 * Yields plants page by page.
 *
 * @param readPage returns rows from an id on, in order of id
 */
export async function* pagesOf(
  readPage: (from: bigint, rows: number) => Promise<readonly PlantRow[]>,
): AsyncGenerator<readonly Plant[]> {
  let from = plantIdMin
  while (true) {
    const rows = await readPage(from, snapshotPageRows)
    const last = rows.at(-1)?.id
    if (last === undefined) return
    yield rows.map(toPlant)
    if (last === plantIdMax) return
    from = last + 1n
  }
}
