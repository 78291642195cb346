import type { Plant, RefusedError } from '@plant-store/client'
import { type Answer, readVersion } from '@plant-store/client/page'
import { writeJsonRecord } from './json.ts'
import { readItem, readPlant, type StoredPlant, send, toUrl } from './plants.ts'
import { isRefused, messageOf } from './session.ts'
import { toText } from './values.ts'

/** A change of one plant. */
export interface Change {
  readonly id: bigint
  /** The plant as it will be, `undefined` if it is to be deleted. */
  readonly wanted: Plant | undefined
}

export function participle({ wanted }: Change): string {
  return wanted ? 'saved' : 'deleted'
}

/**
 * Makes a change. Resolves to whether it is done, or else the plant is no longer as it
 * was read, and to the plant as it is now, `undefined` if there is none.
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
) {
  try {
    return { isDone: true, now: await make(change, base) }
  } catch (error) {
    const isUncertain = (error as Partial<RefusedError>).mayHaveChanged === true
    if (!isUncertain && !isRefused(error, 412) && !isRefused(error, 404)) {
      throw error
    }
    const not = `It was not ${participle(change)}`
    const doubtful = isUncertain
      ? `It is unknown whether it was ${participle(change)}`
      : not
    if (isUncertain) {
      onUncertain(`${doubtful}. Reading it again …`)
    }
    const now = await readPlant(change.id).catch(cause => {
      throw new Error(`${doubtful}: ${messageOf(cause)}`)
    })
    const isDone = isSamePlant(now?.item, change.wanted)
    if (!isDone && now?.version === base?.version) {
      throw new Error(`${not}: ${messageOf(error)}`)
    }
    return { isDone, now }
  }
}

/** A new plant is saved, too, because the store then recognises a repeated attempt. */
function make({ id, wanted }: Change, base: StoredPlant | undefined) {
  const headers: Readonly<Record<string, string>> = base
    ? { 'if-match': `"${base.version}"` }
    : { 'if-none-match': '*' }
  const request = { url: toUrl(id), headers, signal: undefined }
  if (wanted === undefined) {
    return send({ ...request, method: 'DELETE', read: () => undefined })
  }
  const body = writeJsonRecord({ ...wanted, id: undefined })
  const read = (answer: unknown, whole: Answer) => ({
    item: readItem(answer, id),
    version: readVersion(whole),
  })
  return send({ ...request, method: 'PUT', body, read })
}

/** Returns whether two states of a plant have the same values, or both are none. */
function isSamePlant(a: Plant | undefined, b: Plant | undefined) {
  const names = Object.keys({ ...a, ...b }) as (keyof Plant)[]
  return names.every(name => toText(a?.[name]) === toText(b?.[name]))
}
