import { type AddOptions, idTaken, type Plant, type PlantId } from '@plant-store/domain'
import { type LoadOutcome, type OnTaken, openArchive } from '@plant-store/persistence'

export interface ImportTarget extends AsyncDisposable {
  add(plants: readonly Plant[]): Promise<Loaded>
  /** Ends the import. A strict import is stored only now. */
  keep(): Promise<'kept' | { readonly takenMeanwhile: PlantId }>
}

/** The outcome of a batch. */
export interface Loaded {
  readonly inserted: number
  readonly replaced: number
  readonly alreadyThere: number
  /** The reasons of rejected plants, by position. */
  readonly reasons: ReadonlyMap<number, string>
}

/** Opens the store. Plants are stored batch by batch, or all at the end of a strict import. */
export async function openTarget(
  url: string,
  onTaken: OnTaken,
  { strict, ...adding }: AddOptions & { readonly strict: boolean },
): Promise<ImportTarget> {
  await using opening = new AsyncDisposableStack()
  const archive = opening.use(await openArchive(url))
  const staged = strict ? opening.use(await archive.stage(onTaken, adding)) : undefined
  const open = opening.move()
  return {
    async add(plants) {
      const outcomes = staged === undefined ? archive.load(plants, onTaken, adding) : staged.add(plants)
      return summed(plants, await outcomes)
    },
    keep: async () => (staged === undefined ? 'kept' : staged.keep()),
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}

function summed(plants: readonly Plant[], outcomes: readonly LoadOutcome[]): Loaded {
  const countOf = (wanted: LoadOutcome) => outcomes.filter(outcome => outcome === wanted).length
  const taken = [...plants.entries()].filter(([index]) => outcomes[index] === 'id-taken')
  return {
    inserted: countOf('inserted'),
    replaced: countOf('replaced'),
    alreadyThere: countOf('already-there'),
    reasons: new Map(taken.map(([index, { id }]) => [index, idTaken(id).message])),
  }
}
