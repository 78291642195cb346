/** What a plant is but for its id, as one text: two plants are equal when these are. */
export type Value = string

export interface Text {
  readonly name: string
  readonly tag?: string | undefined
}

export const toValue = ({ name, tag }: Text): Value => JSON.stringify([name, tag])

/** `replaceIf` and `removeIf` expect a state that was seen before. */
export type Kind = 'create' | 'read' | 'replace' | 'replaceIf' | 'remove' | 'removeIf'

/** A plant as it was seen, and the name of that state. */
export interface State {
  readonly value: Value
  readonly version: string
}

/**
 * How an operation came out, by its answer. `taken`: a create found its id taken. `absent`: a read or remove found
 * nothing. `differs`: the plant was not in the expected state. `refused`: the answer promises that nothing was done. `unknown`: no answer, or one that leaves it open; it
 * was done at some time since, or is never done.
 */
export interface Outcome {
  readonly is: 'done' | 'taken' | 'absent' | 'differs' | 'refused' | 'unknown'
  /** What a read saw. */
  readonly seen?: Value
  /** Of what a read saw, or what a replacement wrote. */
  readonly version?: string
}

/** What an operation makes of a plant, and how it comes out. There is no plant where the value is `undefined`. */
export function takeEffect(
  kind: Kind,
  before: Value | undefined,
  written?: Value,
  expected?: Value,
): { readonly after: Value | undefined; readonly outcome: Outcome } {
  switch (kind) {
    case 'read':
      return {
        after: before,
        outcome: before === undefined ? { is: 'absent' } : { is: 'done', seen: before },
      }
    case 'create':
      return before === undefined
        ? { after: written, outcome: { is: 'done' } }
        : { after: before, outcome: { is: 'taken' } }
    case 'replace':
      return { after: written, outcome: { is: 'done' } }
    case 'replaceIf':
      return before === expected
        ? { after: written, outcome: { is: 'done' } }
        : { after: before, outcome: { is: 'differs' } }
    case 'removeIf':
      return before !== undefined && before === expected
        ? { after: undefined, outcome: { is: 'done' } }
        : { after: before, outcome: { is: 'differs' } }
    case 'remove':
      return { after: undefined, outcome: { is: before === undefined ? 'absent' : 'done' } }
  }
}

/** An operation on one id, with the moments of its call and its answer on one clock that never stands still. */
export interface Operation {
  readonly id: bigint
  readonly kind: Kind
  readonly written?: Value | undefined
  /** Each write has a value of its own, so a value stands for its state. `undefined`: that there is no plant. */
  readonly expected?: Value | undefined
  readonly calledAt: number
  readonly answeredAt: number
  readonly outcome: Outcome
}

/** Operations of racing clients, as they saw them. */
export class History {
  #moment = 0
  #operations: Operation[] = []
  #lastSeen = new Map<bigint, State>()
  #stateOf = new Map<string, string>()
  /** How many operations there were, by outcome. */
  readonly counts = { done: 0, taken: 0, absent: 0, differs: 0, refused: 0, unknown: 0 }
  answeredWrites = 0

  async perform(
    id: bigint,
    kind: Kind,
    written: Value | undefined,
    act: () => Promise<Outcome>,
    expected?: Value,
  ) {
    const calledAt = this.#moment++
    const outcome = await act()
    this.#add({ id, kind, written, expected, calledAt, answeredAt: this.#moment++, outcome })
    const value = outcome.seen ?? written
    if (outcome.version !== undefined && value !== undefined)
      this.#see(id, { value, version: outcome.version })
    return outcome
  }

  /** Of a plant, as a client saw it that knows what all of them saw. */
  lastSeen(id: bigint): State | undefined {
    return this.#lastSeen.get(id)
  }

  /** @throws Error when the version was that of another state */
  #see(id: bigint, state: State): void {
    const { value, version } = state
    const named = this.#stateOf.get(`${id} ${version}`) ?? value
    if (named !== value) throw new Error(`version ${version} of ${id} is that of ${named} and of ${value}`)
    this.#stateOf.set(`${id} ${version}`, value)
    this.#lastSeen.set(id, state)
  }

  /** Reads several ids at once. */
  async readAll(ids: Iterable<bigint>, act: () => Promise<ReadonlyMap<bigint, Value> | undefined>) {
    const calledAt = this.#moment++
    const found = await act()
    if (found !== undefined) this.#addReads(ids, found, calledAt)
  }

  /**
   * Ends the history with what was found after all clients had stopped, and forgets it.
   *
   * @param start what the plants were at its beginning
   * @returns the ids whose operations no order explains
   */
  settle(found: ReadonlyMap<bigint, Value>, start: ReadonlyMap<bigint, Value> = new Map()): bigint[] {
    const ids = new Set([...this.#operations.map(({ id }) => id), ...found.keys()])
    this.#addReads(ids, found, this.#moment++)
    const byId = Map.groupBy(this.#operations, ({ id }) => id)
    this.#operations = []
    return [...byId].filter(([id, own]) => !isLinearizable(own, start.get(id))).map(([id]) => id)
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
    if (operation.kind !== 'read' && operation.outcome.is === 'done') this.answeredWrites++
    this.#operations.push(operation)
  }
}

/**
 * Whether some order explains what every client saw: each operation takes effect at one moment between its call and
 * its answer (Herlihy and Wing), or, where there was no answer, at some moment after its call or never.
 * The operations are those of one id.
 */
export function isLinearizable(operations: readonly Operation[], start: Value | undefined): boolean {
  const all = operations.filter(
    ({ kind, outcome }) => outcome.is !== 'refused' && !(kind === 'read' && outcome.is === 'unknown'),
  )
  const seenBefore = new Set<string>()

  const search = (taken: bigint, state: Value | undefined): boolean => {
    const answered = all.filter(
      ({ outcome }, index) => outcome.is !== 'unknown' && !(taken & (1n << BigInt(index))),
    )
    if (answered.length === 0) return true
    const key = `${taken} ${state}`
    if (seenBefore.has(key)) return false
    seenBefore.add(key)
    const firstAnswer = Math.min(...answered.map(({ answeredAt }) => answeredAt))
    return all.some(({ kind, written, expected, calledAt, outcome: told }, index) => {
      const bit = 1n << BigInt(index)
      if (taken & bit || calledAt > firstAnswer) return false
      const { after, outcome } = takeEffect(kind, state, written, expected)
      const isPossible = told.is === 'unknown' || (told.is === outcome.is && told.seen === outcome.seen)
      return isPossible && search(taken | bit, after)
    })
  }
  return search(0n, start)
}
