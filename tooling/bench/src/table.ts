export const formatInteger = (value: number) => Math.round(value).toLocaleString('en')
export const formatDecimal = (value: number) => value.toFixed(value < 10 ? 2 : 1)

/** Returns the number that a figure shows. */
export const parseFigure = (figure: string) => Number(figure.replaceAll(',', ''))

/** Returns the ratio of two figures as both are shown, so that a reader gets the same. */
export const ratioOf = (figure: string, other: string) =>
  `${(parseFigure(figure) / parseFigure(other)).toFixed(2)} ×`

/**
 * Returns a Markdown table. The first row is its head, and every column but the first is
 * of numbers.
 */
export function table([head = [], ...rows]: readonly string[][]): string {
  const rule = head.map((_, column) => (column === 0 ? '---' : '---:'))
  return [head, rule, ...rows].map(cells => `| ${cells.join(' | ')} |`).join('\n')
}

/** Returns the middle one of an odd number of values. */
export const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[(values.length - 1) / 2] ?? Number.NaN
