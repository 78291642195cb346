/** A mutant after the tests ran with it. */
export interface Mutant {
  /** Such as `src/send.ts`. */
  readonly source: string
  readonly line: number
  /** As `describeChange` says it. */
  readonly change: string
  /** Stryker's. One that could not be tried (`RuntimeError`) does not count. */
  readonly status: string
}

/** By source and change, why it makes no difference that a test could notice. */
export type Equivalents = Readonly<Record<string, Readonly<Record<string, string>>>>

export interface Judgement {
  readonly unnoticed: readonly Mutant[]
  /** Noticed by being slow: the tests did not end. */
  readonly timedOut: readonly Mutant[]
  /** The share of mutants that tests noticed, without equivalent ones, and how many there are of each kind. */
  readonly summary: string
  /** What is named as equivalent in these sources and was noticed, or is no longer in the code. */
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
    summary: `${score.toFixed(1)} %: ${killed} killed, ${timedOut.length} timed out, ${survived} survived, ${notCovered} without a test, ${equivalent} equivalent`,
    useless: useless.map(({ source, change }) => `${source}: ${change}`),
  }
}
