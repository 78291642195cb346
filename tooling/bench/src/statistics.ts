/** @throws Error when there is nothing to take it of */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const above = sorted[Math.floor(sorted.length / 2)]
  const below = sorted[Math.ceil(sorted.length / 2) - 1]
  if (above === undefined || below === undefined) throw new Error('no values')
  return (above + below) / 2
}

/** The median of what the rounds say one by one, so that noise that hit both in a round cancels out. */
export function medianRatio(ours: readonly number[], theirs: readonly number[]): number {
  return median(ours.map((value, round) => value / (theirs[round] as number)))
}
