const integers = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
export const formatInteger = (value: number) => integers.format(value)
export const formatRatio = (value: number) => `${value.toFixed(2)} ×`
export const formatDecimal = (value: number) => value.toFixed(value < 10 ? 2 : 1)

/** Returns a Markdown table. Every column but the first is of numbers. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map(row => row[column]?.length ?? 0)))
  const line = (cells: readonly string[]) => {
    const padded = widths.map((width, column) =>
      column === 0 ? (cells[0] ?? '').padEnd(width) : (cells[column] ?? '').padStart(width),
    )
    return `| ${padded.join(' | ')} |`
  }
  const rule = widths.map((width, column) =>
    '-'.repeat(column === 0 ? width : width - 1).concat(column === 0 ? '' : ':'),
  )
  return [line(head), line(rule), ...rows.map(line)].join('\n')
}

/** @throws Error for no values */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const above = sorted[Math.floor(sorted.length / 2)]
  const below = sorted[Math.ceil(sorted.length / 2) - 1]
  if (above === undefined || below === undefined) throw new Error('no values')
  return (above + below) / 2
}

/** Returns the median of the rounds' ratios, in which noise common to a round cancels out. */
export const medianRatio = (ours: readonly number[], theirs: readonly number[]) =>
  median(ours.map((value, round) => value / (theirs[round] as number)))
