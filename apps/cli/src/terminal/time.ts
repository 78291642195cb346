import { InvalidArgumentError } from '@commander-js/extra-typings'

const unitSeconds = { s: 1, min: 60, h: 3600, d: 86_400, w: 604_800 }

/** @returns milliseconds */
export function timeMs(text: string): number {
  const [, count, unit = 's'] = /^([1-9]\d{0,5})(s|min|h|d|w)$/.exec(text) ?? []
  const seconds = Number(count) * unitSeconds[unit as keyof typeof unitSeconds]
  if (!Number.isNaN(seconds)) return seconds * 1000
  throw new InvalidArgumentError('It must be a time from now, such as 30min, 12h, 90d or 52w.')
}
