import { NoAnswerError, RefusedError } from '@plant-store/client'
import type { Entity } from './description.ts'
import {
  type Item,
  isSameItem,
  type Records,
  readRecord,
  type Stored,
} from './records.ts'
import { forbidChanges, isRefused, signedIn, toWords } from './session.ts'

/** A change of one record. */
export interface Change {
  readonly verb: 'save' | 'delete'
  readonly id: bigint
  /** The record as it will be, `undefined` if it is to be deleted. */
  readonly wanted: Item | undefined
}

/** `saved` or `deleted`. */
export function participle({ verb }: Change): string {
  return `${verb}d`
}

/** How an attempt to make a change ended. */
export type Outcome =
  | { readonly kind: 'done' }
  /** Nothing was changed, or it is unknown. */
  | { readonly kind: 'failed'; readonly reason: string }
  /** The record is no longer as it was read. `now` is `undefined` if it is gone. */
  | { readonly kind: 'conflict'; readonly now: Stored | undefined }

/** The parts of the browser page that a change needs. */
export interface ChangeOptions {
  readonly entity: Entity
  readonly records: Records
  /** Called before the record is read again, with what is uncertain until then. */
  readonly onUncertain: (text: string) => void
}

/**
 * Makes a change, and resolves to what became of it.
 *
 * @param base the record as it was read, `undefined` if there was none
 */
export async function attempt(
  change: Change,
  base: Stored | undefined,
  options: ChangeOptions,
): Promise<Outcome> {
  const { entity, records, onUncertain } = options
  try {
    await signedIn(() => send(change, base, options))
    return { kind: 'done' }
  } catch (error) {
    if (isRefused(error, 403)) {
      forbidChanges(entity.name)
    }
    const isUncertain = mayHaveChanged(error)
    if (!isUncertain && !isRefused(error, 412) && !isRefused(error, 404)) {
      return { kind: 'failed', reason: toWords(error) }
    }
    const doubt = isUncertain ? 'It is unknown whether it was' : 'It was not'
    const doubtful = `${doubt} ${participle(change)}`
    if (isUncertain) {
      onUncertain(`${doubtful}. Reading it again …`)
    }
    try {
      const now = await readRecord(records, change.id)
      return judge(change, base, { now, error })
    } catch (cause) {
      return { kind: 'failed', reason: `${doubtful}: ${toWords(cause)}` }
    }
  }
}

/** Returns the outcome of a failed change, by the record as it is now. */
function judge(
  change: Change,
  base: Stored | undefined,
  { now, error }: { readonly now: Stored | undefined; readonly error: unknown },
): Outcome {
  if (isSameItem(now?.item, change.wanted)) {
    return { kind: 'done' }
  }
  if (now?.version === base?.version) {
    const reason = `It was not ${participle(change)}: ${toWords(error)}`
    return { kind: 'failed', reason }
  }
  return { kind: 'conflict', now }
}

function send(
  { id, wanted }: Change,
  base: Stored | undefined,
  { entity, records }: ChangeOptions,
): Promise<unknown> {
  if (wanted === undefined) {
    return records.remove(id, { ifMatch: base?.version })
  }
  if (base !== undefined) {
    return records.replace(wanted, { ifMatch: base.version })
  }
  if (entity.creation === 'POST' && !entity.canSave) {
    return records.create(wanted)
  }
  return records.replace(wanted, { ifNoneMatch: '*' })
}

function mayHaveChanged(error: unknown): boolean {
  return (
    (error instanceof RefusedError || error instanceof NoAnswerError) &&
    error.mayHaveChanged
  )
}
