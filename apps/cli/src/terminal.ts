import { InvalidArgumentError, Option } from '@commander-js/extra-typings'
import { printable } from '@plant-store/engine'
import { printableLines, writeToStream } from './standard-output.ts'

export const jsonOption = new Option('--json', 'print JSON')

export function countOf(text: string): number {
  if (/^[1-9]\d{0,3}$/.test(text)) {
    return Number(text)
  }
  throw new InvalidArgumentError('It must be a number from 1 to 9999.')
}

export interface Output {
  readonly json?: boolean | undefined
  /** The file of the command. With `-`, standard output, the result goes to standard error. */
  readonly file?: string
}

/**
 * Prints a result: JSON for programs, a sentence for people. Escapes names that contain
 * control characters, because a terminal would obey them.
 *
 * @throws CommandError if the result cannot be written
 */
export async function print(
  { json, file }: Output,
  result: unknown,
  words: string,
): Promise<void> {
  const stream = file === '-' ? process.stderr : process.stdout
  const text = json ? JSON.stringify(result) : words
  await writeToStream(stream, [`${printableLines(text)}\n`])
}

/**
 * Prints a new secret.
 *
 * @param undo removes what has the secret. It is called if the secret cannot be printed,
 *   because nobody has seen it then
 * @throws CommandError like {@link print}
 */
export async function printSecret(
  { json }: Output,
  result: object,
  secret: string,
  undo: () => Promise<unknown>,
): Promise<void> {
  try {
    await print({ json }, result, secret)
  } catch (error) {
    await undo()
    throw error
  }
}

/** Returns lines whose cells stand below each other, or the other words if there is none below the head. */
export function table(
  head: readonly string[],
  below: readonly (readonly string[])[],
  none: string,
): string {
  if (below.length === 0) {
    return none
  }
  const rows = [head, ...below].map(row => row.map(printable))
  const widthOf = (column: number) =>
    Math.max(...rows.map(row => row[column]?.length ?? 0))
  const line = (row: readonly string[]) =>
    row.map((cell, column) => cell.padEnd(widthOf(column))).join('  ')
  return rows.map(row => line(row).trimEnd()).join('\n')
}

/** Returns the time to the minute, in UTC as in the log, or `none`. */
export function minute(date: Date | null | undefined, none = '-'): string {
  return date ? `${date.toISOString().slice(0, 16).replace('T', ' ')}Z` : none
}

/** Returns a phrase such as `1 plant` or `20,000 plants`. */
export function counted(count: number, what: string): string {
  return `${grouped(count)} ${what}${count === 1 ? '' : 's'}`
}

/** Returns the counts of entities such as `3 plants and 1 token`. */
export function countedAll(counts: Readonly<Record<string, number | undefined>>): string {
  const each = Object.entries(counts).map(([plural, count]) =>
    count === undefined
      ? `an unknown number of ${plural}`
      : counted(count, plural.slice(0, -1)),
  )
  return listed(each)
}

/** Returns words such as `a, b and c`. */
export const listed = (words: readonly string[]) =>
  words.join(', ').replace(/, (?=[^,]*$)/, ' and ')

/**
 * Returns a number such as `20,000`. The first `toLocaleString` of a process takes as long as loading most of this
 * program.
 */
export function grouped(count: number): string {
  return `${count}`.replaceAll(/\B(?=(\d{3})+$)/g, ',')
}

/** Returns a duration such as `9s`, `1min 30s` or `2h 5min`. */
export function duration(seconds: number): string {
  const whole = Math.round(seconds)
  if (whole < 60) {
    return `${whole}s`
  }
  const minutes = Math.floor(whole / 60)
  return minutes < 60
    ? `${minutes}min ${whole % 60}s`
    : `${Math.floor(minutes / 60)}h ${minutes % 60}min`
}

export function rate(count: number, seconds: number): string {
  return `${grouped(Math.round(count / Math.max(seconds, 0.001)))}/s`
}

/**
 * Shows a bar on a terminal.
 *
 * @param what is counted, such as `plant`
 * @returns `update`, with the number done, its part of the total, and the total, which is 0 if unknown
 */
export async function showProgress(what: string, isShown: boolean) {
  if (!isShown || !process.stderr.isTTY) {
    return { update() {}, [Symbol.dispose]() {} }
  }
  const { Format, Presets, SingleBar } = (await import('cli-progress')).default
  const bar = new SingleBar(
    {
      format(options, { progress, startTime, total, value }, { count }) {
        const seconds = (Date.now() - startTime) / 1000
        const words = describeProgress(what, { count, value, total, seconds })
        return total === 0 ? words : `${Format.BarFormat(progress, options)} ${words}`
      },
      stream: process.stderr,
      barsize: 30,
      fps: 8,
      hideCursor: true,
      clearOnComplete: true,
      gracefulExit: false,
    },
    Presets.shades_classic,
  )
  bar.start(0, 0, { count: 0 })
  return {
    update(count: number, value: number, total: number) {
      bar.setTotal(total)
      bar.update(Math.min(value, total), { count })
    },
    [Symbol.dispose]: () => bar.stop(),
  }
}

type Amount = 'count' | 'value' | 'total' | 'seconds'

/** Returns the words beside the bar. They are shown alone if the total is unknown. */
export function describeProgress(
  what: string,
  done: Readonly<Record<Amount, number>>,
): string {
  const { count, value, total, seconds } = done
  const speed = `${counted(count, what)}  ${rate(count, seconds)}`
  if (total === 0) {
    return `${speed}  ${duration(seconds)}`
  }
  const left = value > 0 ? duration((seconds * (total - value)) / value) : '?'
  const percentage = `${Math.floor((100 * value) / total)}%`.padStart(4)
  return `${percentage}  ${speed}  ${left} left`
}
