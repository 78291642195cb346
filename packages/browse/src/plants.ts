import type {
  EntityClient,
  Plant,
  PlantId,
  PlantListQuery,
  Versioned,
} from '@plant-store/client'
import { createOperations, createUncheckedSend } from '@plant-store/client/page'
import { base, forbidChanges, isRefused, signedIn, token } from './session.ts'
import { toText } from './values.ts'

/**
 * A value for each member of a plant. Where one is missing, the page does not compile.
 */
export type Members<Value> = {
  readonly [Member in keyof Required<Plant>]: Value
}

export type StoredPlant = Versioned<Plant>

/** The parameters of a list that have a field above the table. */
export type Filter = Exclude<keyof PlantListQuery, 'limit' | 'count'>

/** What a field says about its member. */
export const hints: Members<string> = {
  id: 'A whole number that no other plant has. It cannot be changed later.',
  name: 'Any text, also of several lines.',
  tag: 'The kind of plant, such as climber. Empty for none.',
}

/** The store. Members that only a newer page knows survive a save. */
export const plants: EntityClient<Plant, PlantListQuery> = createOperations(
  createUncheckedSend({ baseUrl: base, token, neverConnected: () => false }),
  `${new URL('plants', base)}`,
  {
    parse: (value: unknown, id?: PlantId) => ({ id, ...(value as object) }) as Plant,
    parseId: id => id as PlantId,
    parseQuery: query => query,
  },
)

/** Resolves to a plant as it is now, or to `undefined` if there is none. */
export async function readPlant(
  id: bigint,
  signal?: AbortSignal,
): Promise<StoredPlant | undefined> {
  try {
    return await signedIn(() => plants.readVersioned(id, { signal }))
  } catch (error) {
    if (isRefused(error, 404)) {
      return undefined
    }
    throw error
  }
}

/** Returns whether two states of a plant have the same values. */
export function isSamePlant(a: Plant | undefined, b: Plant | undefined): boolean {
  if (a === undefined || b === undefined) {
    return a === b
  }
  const names = Object.keys({ ...a, ...b }) as (keyof Plant)[]
  return names.every(name => toText(a[name]) === toText(b[name]))
}

/** The token whose scope was asked for. */
let tokenAsked = ''

/**
 * Finds out whether a new token may only read, before somebody types: a batch without
 * lines changes nothing, and is refused like one with lines.
 */
export async function askForScope(): Promise<void> {
  const tokenSent = token()
  if (tokenSent === '' || tokenSent === tokenAsked) {
    return
  }
  tokenAsked = tokenSent
  const headers = {
    authorization: `Bearer ${tokenSent}`,
    'content-type': 'application/x-ndjson',
  }
  // A save will say why the store does not answer.
  const answer = await fetch(new URL('plants/batch', base), {
    method: 'POST',
    headers,
  }).catch(() => {})
  if (answer?.status === 403 && token() === tokenSent) {
    forbidChanges()
  }
}
