const integers = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
export const formatInteger = (value: number) => integers.format(value)
export const formatRatio = (value: number) => `${value.toFixed(2)} ×`
export const formatDecimal = (value: number) => value.toFixed(value < 10 ? 2 : 1)

/** Returns a Markdown table. Every column but the first is of numbers. */
export function table(
  head: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  const rule = head.map((_, column) => (column === 0 ? '---' : '---:'))
  return [head, rule, ...rows].map(line).join('\n')
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length / 2
  const below = sorted[Math.ceil(middle) - 1] ?? Number.NaN
  const above = sorted[Math.floor(middle)] ?? Number.NaN
  return (below + above) / 2
}

/**
 * Returns the median of the rounds' ratios, in which noise common to a round cancels out.
 */
export const medianRatio = (ours: readonly number[], theirs: readonly number[]) =>
  median(ours.map((value, round) => value / (theirs[round] as number)))
