import { counted, duration, rate } from './words.ts'

export interface Progress extends Disposable {
  /**
   * @param count how many have been done
   * @param value how much of the total that is
   * @param total 0 if it is unknown
   */
  update(count: number, value: number, total: number): void
}

/**
 * Shows a bar on a terminal until its disposal. Shows nothing on other outputs.
 *
 * @param what is counted, such as `plant`
 */
export async function showProgress(what: string, isShown: boolean): Promise<Progress> {
  // A dumb terminal shows the control characters of a bar as they are.
  const canMoveCursor = process.stderr.isTTY && process.env['TERM'] !== 'dumb'
  if (!isShown || !canMoveCursor) {
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
    update(count, value, total) {
      bar.setTotal(total)
      bar.update(value, { count })
    },
    [Symbol.dispose]: () => bar.stop(),
  }
}

/** Returns the words beside the bar. They are shown alone if the total is unknown. */
export function describeProgress(
  what: string,
  done: Readonly<Record<'count' | 'value' | 'total' | 'seconds', number>>,
): string {
  const { count, value, total, seconds } = done
  const speed = `${counted(count, what)}  ${rate(count, seconds)}`
  if (total === 0) {
    return `${speed}  ${duration(seconds)}`
  }
  // A file may have grown since its size was read.
  const share = Math.min(value / total, 1)
  const percentage = `${Math.floor(100 * share)}%`.padStart(4)
  if (value === 0) {
    return `${percentage}  ${speed}  ? left`
  }
  const secondsLeft = seconds / share - seconds
  return `${percentage}  ${speed}  ${duration(secondsLeft)} left`
}
