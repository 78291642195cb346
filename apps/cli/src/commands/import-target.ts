import { createPlantClient } from '@plant-store/client'
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

/** Opens the store itself. Plants are stored batch by batch, or all at the end of a strict import. */
export async function openStore(
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

/** Long enough for a slow connection. */
const timeoutMs = 60_000

/** Opens a server, through `POST /plants/batch`. */
export function openServer(baseUrl: URL, token: string, adding: AddOptions): ImportTarget {
  const client = createPlantClient({ baseUrl, token, timeoutMs })
  return {
    async add(plants) {
      const options = { ...adding, faultsMax: plants.length }
      const { created, existing, faults } = await client.createMany(plants, options)
      const reasons = new Map(faults.map(({ index, message }) => [index, message]))
      return { inserted: created, replaced: 0, alreadyThere: existing, reasons }
    },
    keep: async () => 'kept',
    async [Symbol.asyncDispose]() {},
  }
}
