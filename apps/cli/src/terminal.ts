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
  /**
   * The file of the command. With `-`, standard output, the result goes to standard
   * error.
   */
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
 * @param undo removes what has the secret. It is called if the secret cannot be
 *   printed, because nobody has seen it then
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

/**
 * Returns a table, whose cells stand below each other.
 *
 * @param emptyWords what it returns instead of a table without rows
 */
export function table(
  head: readonly string[],
  body: readonly (readonly string[])[],
  emptyWords: string,
): string {
  if (body.length === 0) {
    return emptyWords
  }
  const rows = [head, ...body].map(row => row.map(printable))
  const widthOf = (column: number) =>
    Math.max(...rows.map(row => row[column]?.length ?? 0))
  const line = (row: readonly string[]) =>
    row.map((cell, column) => cell.padEnd(widthOf(column))).join('  ')
  return rows.map(row => line(row).trimEnd()).join('\n')
}

/** Returns the time to the minute in UTC, such as `2026-01-31 09:05Z`, or `none`. */
export function minute(date: Date | null | undefined, none = '-'): string {
  if (date === null || date === undefined) {
    return none
  }
  const [day, time] = date.toISOString().split('T')
  return `${day} ${time?.slice(0, 5)}Z`
}

/** Returns a phrase such as `1 plant` or `20,000 plants`. */
export function counted(count: number, what: string): string {
  const ending = count === 1 ? '' : 's'
  return `${grouped(count)} ${what}${ending}`
}

/** Returns the counts of entities such as `3 plants and 1 token`. */
export function countedAll(counts: Readonly<Record<string, number | undefined>>): string {
  const phrases = Object.entries(counts).map(([plural, count]) => {
    if (count === undefined) {
      return `an unknown number of ${plural}`
    }
    return counted(count, plural.slice(0, -1))
  })
  return listed(phrases)
}

/** Returns words such as `a, b and c`. */
export function listed(words: readonly string[]): string {
  const last = words.at(-1) ?? ''
  const others = words.slice(0, -1)
  if (others.length === 0) {
    return last
  }
  return `${others.join(', ')} and ${last}`
}

/**
 * Returns a number such as `20,000`. It does not use `toLocaleString`, whose first call
 * takes as long as loading most of this program.
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
  if (minutes < 60) {
    return `${minutes}min ${whole % 60}s`
  }
  return `${Math.floor(minutes / 60)}h ${minutes % 60}min`
}

export function rate(count: number, seconds: number): string {
  return `${grouped(Math.round(count / Math.max(seconds, 0.001)))}/s`
}

export interface Progress extends Disposable {
  /**
   * @param count how many have been done
   * @param value how much of the total that is
   * @param total 0 if it is unknown
   */
  update(count: number, value: number, total: number): void
}

/**
 * Shows a bar on a terminal until its disposal.
 *
 * @param what is counted, such as `plant`
 */
export async function showProgress(what: string, isShown: boolean): Promise<Progress> {
  if (!isShown || !process.stderr.isTTY) {
    return { update() {}, [Symbol.dispose]() {} }
  }
  const { Format, Presets, SingleBar } = (await import('cli-progress')).default
  const bar = new SingleBar(
    {
      format(options, { progress, startTime, total, value }, { count }) {
        const seconds = (Date.now() - startTime) / 1000
        const words = describeProgress(what, { count, value, total, seconds })
        if (total === 0) {
          return words
        }
        return `${Format.BarFormat(progress, options)} ${words}`
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
  const percentage = `${Math.floor((100 * value) / total)}%`.padStart(4)
  if (value === 0) {
    return `${percentage}  ${speed}  ? left`
  }
  const secondsLeft = (seconds * (total - value)) / value
  return `${percentage}  ${speed}  ${duration(secondsLeft)} left`
}
