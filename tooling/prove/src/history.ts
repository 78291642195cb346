import type { Plant } from '@plant-store/domain'
import { toJson } from '@plant-store/http/testing'

/** A plant without its id, as one text: two plants are equal if these are. */
export type Value = string

export interface Text {
  readonly name: string
  readonly tag?: string | undefined
}

/** A forgotten member does not compile. */
type Members = Readonly<Record<Exclude<keyof Plant, 'id'>, unknown>>

export function toValue({ name, tag }: Text): Value {
  const members: Members = { name, tag }
  return toJson(members)
}

/** `replaceIf` and `removeIf` expect a state that was seen before. */
export const kinds = [
  'create',
  'read',
  'replace',
  'replaceIf',
  'remove',
  'removeIf',
] as const
export type Kind = (typeof kinds)[number]

/**
 * The outcome of an operation. `taken`: a create found its id taken. `absent`: a read or
 * remove found no plant.
 *
 * `differs`: the plant did not have the expected version. `refused`: the answer promises
 * that nothing was done.
 *
 * `unknown`: no answer, or one that leaves it open. The operation takes effect at some
 * later time, or never.
 */
export interface Outcome {
  readonly is: 'done' | 'taken' | 'absent' | 'differs' | 'refused' | 'unknown'
  /** The value that a read saw. */
  readonly seen?: Value
  /** The version that a read saw, or that a replacement wrote. */
  readonly version?: string | undefined
  /** Whether a replacement found no plant. */
  readonly created?: boolean
}

/**
 * Returns the state after an operation on a plant, and its outcome. `undefined` is no
 * plant.
 */
export function takeEffect(
  kind: Kind,
  before: Value | undefined,
  written?: Value,
  expected?: Value,
): { readonly after: Value | undefined; readonly outcome: Outcome } {
  const isAbsent = before === undefined
  switch (kind) {
    case 'read':
      return {
        after: before,
        outcome: isAbsent ? { is: 'absent' } : { is: 'done', seen: before },
      }
    case 'create':
      return isAbsent
        ? { after: written, outcome: { is: 'done' } }
        : { after: before, outcome: { is: 'taken' } }
    case 'replaceIf':
      return before === expected
        ? takeEffect('replace', before, written)
        : { after: before, outcome: { is: 'differs' } }
    case 'replace':
      return { after: written, outcome: { is: 'done', created: isAbsent } }
    case 'removeIf':
      return isAbsent || before === expected
        ? takeEffect('remove', before)
        : { after: before, outcome: { is: 'differs' } }
    case 'remove':
      return { after: undefined, outcome: { is: isAbsent ? 'absent' : 'done' } }
  }
}

/** An operation on one id, as a client asks for it. */
interface Asked {
  readonly id: bigint
  readonly kind: Kind
  readonly written?: Value | undefined
  /**
   * Each write has a unique value, so a value identifies a version. `undefined` is no
   * plant.
   */
  readonly expected?: Value | undefined
}

/** An operation with the times of its call and its answer on a monotonic clock. */
export interface Operation extends Asked {
  readonly calledAt: number
  readonly answeredAt: number
  readonly outcome: Outcome
}

/** The operations of racing clients, as they observed them. */
export class History {
  #moment = 0
  #operations: Operation[] = []
  readonly #stateOf = new Map<string, Value>()
  /** Each plant and its version, as the last client to learn both has seen them. */
  readonly lastSeen = new Map<bigint, { value: Value; version: string }>()
  /** How many operations there were, by outcome. */
  readonly counts = { done: 0, taken: 0, absent: 0, differs: 0, refused: 0, unknown: 0 }
  /** Every operation but reads, also of histories that have ended. */
  readonly changes: Operation[] = []

  /** @throws Error if the version that a client was told was that of another state */
  async perform(asked: Asked, act: () => Promise<Outcome>): Promise<Outcome> {
    const { id, written } = asked
    const calledAt = this.#moment++
    const outcome = await act()
    this.#add({ ...asked, calledAt, answeredAt: this.#moment++, outcome })
    const { version, seen: value = written } = outcome
    if (version === undefined || value === undefined) {
      return outcome
    }

    const named = this.#stateOf.get(`${id} ${version}`) ?? value
    if (named !== value) {
      throw new Error(`version ${version} of ${id} is that of ${named} and of ${value}`)
    }
    this.#stateOf.set(`${id} ${version}`, value)
    this.lastSeen.set(id, { value, version })
    return outcome
  }

  /** Reads several ids at once. */
  async readAll(
    ids: Iterable<bigint>,
    act: () => Promise<ReadonlyMap<bigint, Value> | undefined>,
  ) {
    const calledAt = this.#moment++
    const found = await act()
    if (found !== undefined) {
      this.#addReads(ids, found, calledAt)
    }
  }

  /**
   * Ends the history with the plants found after all clients had stopped, and clears it.
   *
   * @param start the plants at its beginning
   * @returns a line for each plant whose operations no order explains
   */
  settle(
    found: ReadonlyMap<bigint, Value>,
    start: ReadonlyMap<bigint, Value> = new Map(),
  ): string[] {
    const operated = this.#operations.map(({ id }) => id)
    const ids = new Set([...operated, ...start.keys(), ...found.keys()])
    this.#addReads(ids, found, this.#moment++)
    const byId = Map.groupBy(this.#operations, ({ id }) => id)
    this.#operations = []
    return [...byId]
      .filter(([id, own]) => !isLinearizable(own, start.get(id)))
      .map(([id]) => {
        const now = found.get(id) ?? 'absent'
        return `no order of events explains plant ${id}, which is now ${now}`
      })
  }

  #addReads(ids: Iterable<bigint>, found: ReadonlyMap<bigint, Value>, calledAt: number) {
    const answeredAt = this.#moment++
    for (const id of ids) {
      const { outcome } = takeEffect('read', found.get(id))
      this.#add({ id, kind: 'read', calledAt, answeredAt, outcome })
    }
  }

  #add(operation: Operation) {
    this.counts[operation.outcome.is]++
    this.#operations.push(operation)
    if (operation.kind !== 'read') {
      this.changes.push(operation)
    }
  }
}

/**
 * Returns whether some order of the operations on one id explains what every client
 * observed (linearizability, Herlihy and Wing). An operation takes effect at one moment
 * between its call and its answer. Without an answer, it takes effect at any time after
 * its call, or never.
 */
export function isLinearizable(
  operations: readonly Operation[],
  start: Value | undefined,
): boolean {
  const all = operations.filter(
    ({ kind, outcome }) =>
      outcome.is !== 'refused' && !(kind === 'read' && outcome.is === 'unknown'),
  )
  const seenBefore = new Set<string>()

  const search = (taken: bigint, state: Value | undefined): boolean => {
    const answered = all.filter(
      ({ outcome }, index) =>
        outcome.is !== 'unknown' && !(taken & (1n << BigInt(index))),
    )
    if (answered.length === 0) {
      return true
    }
    const key = `${taken} ${state}`
    if (seenBefore.has(key)) {
      return false
    }
    seenBefore.add(key)
    const firstAnswer = Math.min(...answered.map(({ answeredAt }) => answeredAt))
    return all.some(({ kind, written, expected, calledAt, outcome: told }, index) => {
      const bit = 1n << BigInt(index)
      if (taken & bit || calledAt > firstAnswer) {
        return false
      }
      const { after, outcome } = takeEffect(kind, state, written, expected)
      return isPossible(told, outcome) && search(taken | bit, after)
    })
  }
  return search(0n, start)
}

/** Returns whether what a client was told can be this outcome. */
export function isPossible(told: Outcome, { is, seen, created }: Outcome): boolean {
  if (told.is === 'unknown') {
    return true
  }
  const tellsSame = told.created === undefined || told.created === created
  return told.is === is && told.seen === seen && tellsSame
}
