const integers = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
export const formatInteger = (value: number) => integers.format(value)
export const formatDecimal = (value: number) => value.toFixed(value < 10 ? 2 : 1)

/** Returns the ratio of two figures as both are shown, so that a reader gets the same. */
export function ratioOf(figure: string, other: string): string {
  const [above = 0, below = 0] = [figure, other].map(each =>
    Number(each.replaceAll(',', '')),
  )
  return `${(above / below).toFixed(2)} ×`
}

/** Returns a Markdown table. Every column but the first is of numbers. */
export function table(
  head: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  const rule = head.map((_, column) => (column === 0 ? '---' : '---:'))
  return [head, rule, ...rows].map(cells => `| ${cells.join(' | ')} |`).join('\n')
}

/** Returns the middle one of an odd number of values. */
export const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[(values.length - 1) / 2] ?? Number.NaN
