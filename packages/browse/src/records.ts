import {
  createEntityClient,
  type EntityClient,
  type Int64,
  type ListQuery,
  type Versioned,
} from '@plant-store/client'
import type { Entity } from './description.ts'
import { isRefused, signedIn, token } from './session.ts'
import { toText } from './values.ts'

/** A record as the store has it, also with members that the description does not name. */
export interface Item {
  readonly id: Int64
  readonly [member: string]: unknown
}

export type Stored = Versioned<Item>

/** A query of a list, with its filters by their names. */
export interface Query extends ListQuery {
  readonly [filter: string]: unknown
}

export type Records = EntityClient<Item, Query>

export function createRecords({ path }: Entity): Records {
  return createEntityClient<Item, Query>({
    baseUrl: new URL('.', location.href),
    token,
    path,
    parse: (value, id) => ({ id, ...(value as object) }) as Item,
    parseId: id => id as Int64,
    parseQuery: query => query,
  })
}

/** Resolves to a record as it is now, or to `undefined` if there is none. */
export async function readRecord(
  records: Records,
  id: bigint,
  signal?: AbortSignal,
): Promise<Stored | undefined> {
  try {
    return await signedIn(() => records.readVersioned(id, { signal }))
  } catch (error) {
    if (isRefused(error, 404)) {
      return undefined
    }
    throw error
  }
}

/** Returns whether two states of a record have the same values. */
export function isSameItem(a: Item | undefined, b: Item | undefined): boolean {
  if (a === undefined || b === undefined) {
    return a === b
  }
  const names = Object.keys({ ...a, ...b })
  return names.every(name => toText(a[name]) === toText(b[name]))
}
