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
 * A whole store at once, to load and read plants by the million while others read and change it. A promise of a change
 * resolves once the change is durable. Everything rejects with DomainError `store-unavailable`; nothing of that call
 * was then kept, unless it is an OutcomeUnknownError. `plantArchiveContract` in `@plant-store/persistence/testing` is
 * this text as cases that any adapter can run.
 */
export interface PlantArchive {
  /** Loads plants in order in one transaction, which blocks all other writers: pass some 10,000, not a million. */
  load(plants: readonly Plant[], onTaken: OnTaken, options?: AddOptions): Promise<readonly LoadOutcome[]>
  /** Begins a load of any number of plants that is kept whole or not at all. */
  stage(onTaken: OnTaken, options?: AddOptions): Promise<StagedLoad>
  /** The store as it is at this moment, whatever is changed in it afterwards, until it is disposed of. */
  snapshot(): Promise<PlantSnapshot>
}

/** What becomes of the stored plant whose id is loaded again. */
export type OnTaken = 'keep' | 'replace'

/** For a taken id: `replaced`, or when plants are kept, what creating it would come to. */
export type LoadOutcome = CreateOutcome | 'replaced'

/** Plants that no reader sees until they are kept. Disposing of it before discards them. */
export interface StagedLoad extends AsyncDisposable {
  /** Returns the outcomes as of now. An `id-taken` or `already-there` plant is left out of the load. */
  add(plants: readonly Plant[]): Promise<readonly LoadOutcome[]>
  /**
   * Keeps all of them in one transaction, which blocks all other writers. With `onTaken: 'keep'`, an id that was taken
   * since it was added stops it: nothing is then kept.
   */
  keep(): Promise<'kept' | { readonly takenMeanwhile: PlantId }>
}

export interface PlantSnapshot extends AsyncDisposable {
  readonly count: number
  /** All of them in ascending numeric order of the ids, a few at a time: memory does not grow with their number. */
  plants(): AsyncIterable<readonly Plant[]>
}

const snapshotPageRows = 1_000

/** @param readPage returns rows from an id on, in the order of the ids */
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
