const integers = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
export const formatInteger = (value: number) => integers.format(value)
export const formatDecimal = (value: number) => value.toFixed(value < 10 ? 2 : 1)

/**
 * Returns the ratio of a row's figure to another's as both are shown, so that a reader
 * gets the same, and nothing beside itself.
 */
export function ratioOf(figures: readonly string[], row: number, other: number): string {
  const shown = (index: number) => Number(figures[index]?.replaceAll(',', ''))
  return row === other ? '' : `${(shown(row) / shown(other)).toFixed(2)} ×`
}

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
