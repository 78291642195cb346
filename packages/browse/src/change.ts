import { NoAnswerError, type Plant, RefusedError } from '@plant-store/client'
import { isSamePlant, plants, readPlant, type StoredPlant } from './plants.ts'
import { isRefused, messageOf, signedIn } from './session.ts'

/** A change of one plant. */
export interface Change {
  readonly id: bigint
  /** The plant as it will be, `undefined` if it is to be deleted. */
  readonly wanted: Plant | undefined
}

export function participle({ wanted }: Change): string {
  return wanted ? 'saved' : 'deleted'
}

/** How an attempt to make a change ended. */
export interface Outcome {
  /** Otherwise the plant is no longer as it was read. */
  readonly isDone: boolean
  /** The plant as it is now, `undefined` if there is none. */
  readonly now: StoredPlant | undefined
}

/**
 * Makes a change, and resolves to what became of it.
 *
 * @param base the plant as it was read, `undefined` if there was none
 * @param onUncertain called before the plant is read again, with what is uncertain until
 * then
 * @throws the reason if nothing was changed, or it is unknown
 */
export async function attempt(
  change: Change,
  base: StoredPlant | undefined,
  onUncertain: (text: string) => void,
): Promise<Outcome> {
  try {
    const stored = await signedIn(() => send(change, base))
    return { isDone: true, now: stored }
  } catch (error) {
    const isUncertain = mayHaveChanged(error)
    if (!isUncertain && !isRefused(error, 412) && !isRefused(error, 404)) {
      throw error
    }
    const doubt = isUncertain ? 'It is unknown whether it was' : 'It was not'
    const doubtful = `${doubt} ${participle(change)}`
    if (isUncertain) {
      onUncertain(`${doubtful}. Reading it again …`)
    }
    const now = await readPlant(change.id).catch(cause => {
      throw new Error(`${doubtful}: ${messageOf(cause)}`)
    })
    const isDone = isSamePlant(now?.item, change.wanted)
    if (!isDone && now?.version === base?.version) {
      throw new Error(`It was not ${participle(change)}: ${messageOf(error)}`)
    }
    return { isDone, now }
  }
}

/** A new plant is saved, too, because the store then recognises a repeated attempt. */
async function send(
  { id, wanted }: Change,
  base: StoredPlant | undefined,
): Promise<StoredPlant | undefined> {
  if (wanted !== undefined) {
    const condition = base ? { ifMatch: base.version } : { ifNoneMatch: '*' as const }
    return plants.replace(wanted, condition)
  }
  await plants.remove(id, { ifMatch: base?.version })
  return undefined
}

function mayHaveChanged(error: unknown): boolean {
  return (
    (error instanceof RefusedError || error instanceof NoAnswerError) &&
    error.mayHaveChanged
  )
}
