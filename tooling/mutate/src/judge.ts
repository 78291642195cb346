/** A mutant after the test run. */
export interface Mutant {
  /** Such as `src/send.ts`. */
  readonly source: string
  readonly line: number
  /** In the form of `describeChange`. */
  readonly change: string
  /** Stryker's. A mutant that could not be tried (`RuntimeError`) does not count. */
  readonly status: string
}

/** The reason why no test could notice a change, by source and change. */
export type Equivalents = Readonly<Record<string, Readonly<Record<string, string>>>>

export interface Judgement {
  readonly unnoticed: readonly Mutant[]
  /** Noticed by a timeout. */
  readonly timedOut: readonly Mutant[]
  /** The share of noticed mutants, without equivalent ones, and the number of each kind. */
  readonly summary: string
  /** Entries for equivalent mutants that were noticed, or are no longer in the code. */
  readonly useless: readonly string[]
}

export function judge(mutants: readonly Mutant[], equivalents: Equivalents): Judgement {
  const of = (status: string) => mutants.filter(mutant => mutant.status === status)
  const [killed, timedOut] = [of('Killed').length, of('Timeout')]
  const survivors = [...of('Survived'), ...of('NoCoverage')]
  const unnoticed = survivors.filter(({ source, change }) => equivalents[source]?.[change] === undefined)
  const equivalent = survivors.length - unnoticed.length
  const notCovered = unnoticed.filter(({ status }) => status === 'NoCoverage').length
  const noticed = killed + timedOut.length
  const score = (100 * noticed) / (noticed + unnoticed.length)
  const survived = unnoticed.length - notCovered

  const named = Object.entries(equivalents).flatMap(([source, changes]) =>
    Object.keys(changes).map(change => ({ source, change })),
  )
  const useless = named.filter(
    ({ source, change }) =>
      mutants.some(mutant => mutant.source === source) &&
      !survivors.some(mutant => mutant.source === source && mutant.change === change),
  )
  return {
    unnoticed,
    timedOut,
    summary: `${score.toFixed(1)} %: ${killed} killed, ${timedOut.length} timed out, ${survived} survived, ${notCovered} without a test, ${equivalent} equivalent, ${of('RuntimeError').length} not judged`,
    useless: useless.map(({ source, change }) => `${source}: ${change}`),
  }
}
