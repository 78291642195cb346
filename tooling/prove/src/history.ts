/** What a plant is but for its id, as one text: two plants are equal when these are. */
export type Value = string

export const toValue = (plant: { readonly name: string; readonly tag?: string | undefined }): Value =>
  JSON.stringify([plant.name, plant.tag])

export type Kind = 'create' | 'read' | 'replace' | 'remove'

/** How an operation came out, as its answer told. */
export type Outcome =
  | { readonly is: 'done'; readonly seen?: Value }
  /** A create found its id taken. */
  | { readonly is: 'taken' }
  /** A read or remove found nothing. */
  | { readonly is: 'absent' }
  /** An answer that promises that nothing was done. */
  | { readonly is: 'refused' }
  /** No answer, or one that can't tell: it was done at some time since, or is never done. */
  | { readonly is: 'unknown' }

/** An operation on one id, with the moments of its call and its answer on one clock that never stands still. */
export interface Operation {
  readonly id: bigint
  readonly kind: Kind
  readonly written?: Value
  readonly calledAt: number
  readonly answeredAt: number
  readonly outcome: Outcome
}

/** Operations of racing clients, as they saw them. */
export interface History {
  perform(id: bigint, kind: Kind, written: Value | undefined, act: () => Promise<Outcome>): Promise<Outcome>
  /** Several ids that were read at once. */
  readAll(ids: readonly bigint[], act: () => Promise<ReadonlyMap<bigint, Value> | undefined>): Promise<void>
  /** Writes down, as a read of every id that there was anything with, what was found when all had come to rest. */
  settle(found: ReadonlyMap<bigint, Value>): void
  /** The ids whose operations no order explains, and forgets all that was before. @param states what the ids were at the start */
  unexplained(states: ReadonlyMap<bigint, Value>): readonly bigint[]
  /** How many operations there were, by how they came out. */
  readonly counts: Record<Outcome['is'], number>
  /** Writes that were answered as done. */
  answeredWrites(): number
}

export function createHistory(): History {
  let moment = 0
  let answeredWrites = 0
  const operations = new Map<bigint, Operation[]>()
  const counts = { done: 0, taken: 0, absent: 0, refused: 0, unknown: 0 }
  const add = (operation: Operation) => {
    counts[operation.outcome.is]++
    if (operation.kind !== 'read' && operation.outcome.is === 'done') answeredWrites++
    const before = operations.get(operation.id)
    if (before === undefined) operations.set(operation.id, [operation])
    else before.push(operation)
  }
  return {
    counts,
    answeredWrites: () => answeredWrites,
    async perform(id, kind, written, act) {
      const calledAt = moment++
      const outcome = await act()
      const answeredAt = moment++
      add({ id, kind, ...(written !== undefined && { written }), calledAt, answeredAt, outcome })
      return outcome
    },
    async readAll(ids, act) {
      const calledAt = moment++
      const found = await act()
      const answeredAt = moment++
      if (found === undefined) return
      for (const id of ids) {
        const seen = found.get(id)
        const outcome: Outcome = seen === undefined ? { is: 'absent' } : { is: 'done', seen }
        add({ id, kind: 'read', calledAt, answeredAt, outcome })
      }
    },
    settle(found) {
      for (const id of new Set([...operations.keys(), ...found.keys()])) {
        const seen = found.get(id)
        const outcome: Outcome = seen === undefined ? { is: 'absent' } : { is: 'done', seen }
        add({ id, kind: 'read', calledAt: moment, answeredAt: moment, outcome })
      }
      moment++
    },
    unexplained(states) {
      const ids = [...operations].filter(([id, own]) => !isLinearizable(own, states.get(id)))
      operations.clear()
      return ids.map(([id]) => id)
    },
  }
}

/**
 * Whether some order explains what every client saw: each operation takes effect at one moment between its call and
 * its answer (Herlihy and Wing), or, where there was no answer, at some moment after its call or never.
 * The operations are those of one id; it is `undefined` as long as there is no plant.
 */
export function isLinearizable(operations: readonly Operation[], start: Value | undefined): boolean {
  const all = operations.filter(
    ({ kind, outcome }) => outcome.is !== 'refused' && !(kind === 'read' && outcome.is === 'unknown'),
  )
  const seenBefore = new Set<string>()

  const search = (taken: bigint, state: Value | undefined): boolean => {
    const left = all.filter((_, index) => !(taken & (1n << BigInt(index))))
    const answered = left.filter(({ outcome }) => outcome.is !== 'unknown')
    if (answered.length === 0) return true
    const key = `${taken} ${state}`
    if (seenBefore.has(key)) return false
    seenBefore.add(key)
    const firstAnswer = Math.min(...answered.map(({ answeredAt }) => answeredAt))
    for (const [index, operation] of all.entries()) {
      const bit = 1n << BigInt(index)
      if (taken & bit || operation.calledAt > firstAnswer) continue
      const after = takeEffect(state, operation)
      if (after !== impossible && search(taken | bit, after)) return true
    }
    return false
  }
  return search(0n, start)
}

const impossible = Symbol('impossible')

function takeEffect(
  state: Value | undefined,
  { kind, written, outcome }: Operation,
): Value | undefined | typeof impossible {
  const isUnknown = outcome.is === 'unknown'
  switch (kind) {
    case 'read':
      return (outcome.is === 'done' ? outcome.seen : undefined) === state ? state : impossible
    case 'create':
      if (state === undefined) return isUnknown || outcome.is === 'done' ? written : impossible
      return isUnknown || outcome.is === 'taken' ? state : impossible
    case 'replace':
      return isUnknown || outcome.is === 'done' ? written : impossible
    case 'remove':
      if (state === undefined) return isUnknown || outcome.is === 'absent' ? state : impossible
      return isUnknown || outcome.is === 'done' ? undefined : impossible
  }
}
