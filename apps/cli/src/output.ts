/** How a command tells its result. */
export interface Output {
  readonly json: boolean
  /** Where: 2 when the standard output carries the data itself. */
  readonly descriptor?: 1 | 2
}

/** Prints a result: an object for programs, words for people. */
export function print({ json, descriptor = 1 }: Output, result: unknown, words: string): void {
  ;(descriptor === 1 ? process.stdout : process.stderr).write(`${json ? JSON.stringify(result) : words}\n`)
}

/** @returns such as `1 plant` or `20,000 plants` */
export function counted(count: number, what: string): string {
  return `${grouped(count)} ${what}${count === 1 ? '' : 's'}`
}

/** @returns such as `20,000`. The first `toLocaleString` of a process takes as long as loading most of this program. */
export function grouped(count: number): string {
  return `${count}`.replaceAll(/\B(?=(\d{3})+$)/g, ',')
}
