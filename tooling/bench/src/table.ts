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
  const [below, above] = [Math.ceil(sorted.length / 2) - 1, Math.floor(sorted.length / 2)]
  return ((sorted[below] ?? Number.NaN) + (sorted[above] ?? Number.NaN)) / 2
}

/**
 * Returns the median of the rounds' ratios, in which noise common to a round cancels out.
 */
export const medianRatio = (ours: readonly number[], theirs: readonly number[]) =>
  median(ours.map((value, round) => value / (theirs[round] as number)))
