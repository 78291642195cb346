import { grouped } from './output.ts'

/** How far something has come, shown on the terminal while it goes on. */
export interface Progress extends Disposable {
  /** @param done of the total @param count of what is counted: its rate is shown too */
  update(done: number, count: number): void
  /** A last stage that can't tell how far it is. */
  note(text: string): void
}

export interface ProgressOptions {
  /** Where there is no terminal, or a program reads along, nothing is shown. */
  readonly isShown: boolean
  /** Missing where nobody can know it. */
  readonly total?: number
  /** What is counted: `plants`. */
  readonly unit: string
}

const none: Progress = { update() {}, note() {}, [Symbol.dispose]() {} }

export async function showProgress({ isShown, total, unit }: ProgressOptions): Promise<Progress> {
  if (!isShown || !process.stderr.isTTY) return none
  const { Presets, SingleBar } = await import('cli-progress')
  const known = total !== undefined && total > 0
  const bar = new SingleBar(
    {
      format: known
        ? `{bar} {percentage}%  {counted} ${unit}  {rate}/s  {left} left{note}`
        : `{counted} ${unit}  {rate}/s  {duration_formatted}{note}`,
      stream: process.stderr,
      barsize: 30,
      fps: 8,
      hideCursor: true,
      clearOnComplete: true,
      stopOnComplete: false,
      // It would catch the signals that its caller has to know of.
      gracefulExit: false,
      forceRedraw: true,
    },
    Presets.shades_classic,
  )
  const startedMs = performance.now()
  const text = (done: number, count: number) => {
    const seconds = (performance.now() - startedMs) / 1000
    const left = done > 0 && known ? (seconds * (total - done)) / done : undefined
    return {
      counted: grouped(count),
      rate: grouped(Math.round(count / Math.max(seconds, 0.001))),
      left: left === undefined ? '?' : duration(left),
      note: '',
    }
  }
  bar.start(known ? total : 1, 0, text(0, 0))
  return {
    update: (done, count) => bar.update(known ? Math.min(done, total) : 0, text(done, count)),
    note(words) {
      bar.update({ note: `  ${words}` })
      bar.render()
    },
    [Symbol.dispose]: () => bar.stop(),
  }
}

/** @param seconds @returns such as 9s, 1m 30s, 2h 5m */
export function duration(seconds: number): string {
  const whole = Math.round(seconds)
  if (whole < 60) return `${whole}s`
  const minutes = Math.floor(whole / 60)
  return minutes < 60 ? `${minutes}m ${whole % 60}s` : `${Math.floor(minutes / 60)}h ${minutes % 60}m`
}
