import { counted, duration, rate } from './output.ts'

export interface Progress extends Disposable {
  /**
   * @param count the number done
   * @param value its part of the total
   * @param total 0 if unknown
   */
  update(count: number, value: number, total: number): void
}

/** @param what is counted, such as `plant` */
export async function showProgress(what: string, isShown: boolean): Promise<Progress> {
  if (!isShown || !process.stderr.isTTY) return { update() {}, [Symbol.dispose]() {} }
  const { Format, Presets, SingleBar } = (await import('cli-progress')).default
  const bar = new SingleBar(
    {
      format(options, { progress, startTime, total, value }, { count }) {
        const seconds = (Date.now() - startTime) / 1000
        const words = describeProgress({ count, what, value, total, seconds })
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
    update(count, value, total) {
      bar.setTotal(total)
      bar.update(Math.min(value, total), { count })
    },
    [Symbol.dispose]: () => bar.stop(),
  }
}

interface Done {
  readonly count: number
  readonly what: string
  readonly value: number
  readonly total: number
  readonly seconds: number
}

/** Returns the words beside the bar. They are shown alone if the total is unknown. */
export function describeProgress({ count, what, value, total, seconds }: Done): string {
  const speed = `${counted(count, what)}  ${rate(count, seconds)}`
  if (total === 0) return `${speed}  ${duration(seconds)}`
  const left = value > 0 ? duration((seconds * (total - value)) / value) : '?'
  const percentage = `${Math.floor((100 * value) / total)}%`.padStart(4)
  return `${percentage}  ${speed}  ${left} left`
}
