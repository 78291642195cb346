import type { Running } from './contestants.ts'
import { type Load, type Measured, measure } from './load.ts'
import { formatDecimal, formatInteger, formatRatio, median, medianRatio, table } from './table.ts'

/** The time for the measurements. */
export interface Effort {
  readonly rounds: number
  /** V8 compiles for some seconds after a start. Shared among a contestant's loads. */
  readonly warmUpSeconds: number
  /** In the bigger store of `growth`. */
  readonly manyPlants: number
  /** In the files of `import`. */
  readonly plantsInFile: number
  readonly signal: AbortSignal
}

/** The results of one contestant under one load, by round. */
export type Rounds = readonly Measured[]

/** A measurement takes one second. */
const seconds = 1

/**
 * Measures contestants in turns, so that noise affects all of them alike.
 *
 * @returns by load, by contestant
 */
export async function inTurns(
  running: readonly Running[],
  loads: readonly Load[],
  effort: Effort,
): Promise<Rounds[][]> {
  for (const one of running) {
    for (const load of loads) await measure(one, load, Math.ceil(effort.warmUpSeconds / loads.length))
  }
  const measured = loads.map(() => running.map((): Measured[] => []))
  for (const [row, load] of loads.entries()) {
    for (let round = 1; round <= effort.rounds; round++) {
      for (const [column, one] of running.entries()) {
        effort.signal.throwIfAborted()
        const result = await measure(one, load, seconds)
        measured[row]?.[column]?.push(result)
        const rate = formatInteger(result.perSecond)
        console.error(`${load.title}, round ${round}: ${one.contestant.title}: ${rate} a second`)
      }
    }
  }
  return measured
}

export const figures = (rounds: Rounds, figure: keyof Measured) => rounds.map(each => each[figure])

/** Returns the ratio of the first contestant's request rate to another's. */
export const timesTheRate = (ours: Rounds, theirs: Rounds) =>
  medianRatio(figures(ours, 'perSecond'), figures(theirs, 'perSecond'))

/** Returns a table of all contestants under one load. */
export function comparison(titles: readonly string[], measured: readonly Rounds[]): string {
  const [ours = []] = measured
  return table(
    ['', 'a second', 'ours / theirs', 'p50 ms', 'p99 ms', 'processor µs', 'memory MiB'],
    measured.map((theirs, row) => [
      titles[row] ?? '',
      formatInteger(median(figures(theirs, 'perSecond'))),
      row === 0 ? '' : formatRatio(timesTheRate(ours, theirs)),
      formatDecimal(median(figures(theirs, 'p50Ms'))),
      formatDecimal(median(figures(theirs, 'p99Ms'))),
      formatDecimal(median(figures(theirs, 'processorMicros'))),
      formatInteger(median(figures(theirs, 'mebibytes'))),
    ]),
  )
}
