import type { Plant, PlantId, PlantListQuery, Versioned } from '@plant-store/client'
import { createReads, createUncheckedSend, type Send } from '@plant-store/client/page'
import { base, forbidChanges, isRefused, signedIn, token } from './session.ts'

/**
 * A value for each member of a plant. Where one is missing, the page does not compile.
 */
export type Members<Value> = {
  readonly [Member in keyof Required<Plant>]: Value
}

export type StoredPlant = Versioned<Plant>

/** The parameters of a list that have a field above the table. */
export type Filter = Exclude<keyof PlantListQuery, 'limit' | 'count'>

/** Returns how users see a plant named. A new one has no id yet. */
export function toTitle(id: bigint | undefined): string {
  return id === undefined ? 'New plant' : `Plant ${id}`
}

/** The hint below the field of a member. */
export const hints: Members<string> = {
  id: 'A whole number that no other plant has. It cannot be changed later.',
  name: 'Any text, also of several lines.',
  tag: 'The kind of plant, such as climber. Empty for none.',
}

const sendUnasked = createUncheckedSend({
  baseUrl: base,
  token,
  neverConnected: () => false,
})

/** Sends a request to the store, and asks for a token as long as it accepts none. */
export const send: Send = request => signedIn(() => sendUnasked(request))

const listUrl = `${new URL('plants', base)}`

export const toUrl = (part: bigint | 'batch') => `${listUrl}/${part}`

/**
 * Returns the plant in an answer. Members that only a newer page knows survive a save.
 */
export function readItem(value: unknown, id?: bigint): Plant {
  return { id, ...(value as object) } as Plant
}

export const { list: listPlants, readVersioned } = createReads<Plant, PlantListQuery>(
  send,
  listUrl,
  {
    parse: readItem,
    parseId: id => id as PlantId,
    parseQuery: query => query,
  },
)

/** Resolves to a plant as it is now, or to `undefined` if there is none. */
export function readPlant(id: bigint, signal?: AbortSignal) {
  return readVersioned(id, { signal }).catch(error =>
    isRefused(error, 404) ? undefined : Promise.reject(error),
  )
}

/** The token whose scope was asked for. */
let tokenAsked = ''

/**
 * Finds out whether a new token may only read, before somebody types: a batch without
 * lines changes nothing, and is refused like one with lines.
 */
export async function askForScope(): Promise<void> {
  const tokenSent = token()
  if (tokenSent === tokenAsked) {
    return
  }
  tokenAsked = tokenSent
  const url = toUrl('batch')
  const headers = { 'content-type': 'application/x-ndjson' }
  const read = () => {}
  try {
    await sendUnasked({ method: 'POST', url, headers, signal: undefined, read })
  } catch (error) {
    // A save will say why the store does not answer.
    if (isRefused(error, 403) && token() === tokenSent) {
      forbidChanges()
    }
  }
}
