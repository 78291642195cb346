import { parseStoreUrl } from '@plant-store/engine'

/**
 * Returns the value of a setting or an option.
 *
 * @throws Error whose message follows the name of the setting, such as `must be …`
 */
export type Parse<Value> = (text: string) => Value

/** The units of a time in settings and options, in milliseconds. */
export const unitMs = {
  ms: 1,
  s: 1_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
} as const

/**
 * Returns what reads an amount.
 *
 * @param expectation what the value must be, for the message
 */
export function amount(
  units: Readonly<Record<string, number>>,
  min: number,
  max: number,
  expectation: string,
): Parse<number> {
  return text => {
    const [, digits, unit = ''] = /^(\d{1,10})([a-zA-Z]*)$/.exec(text) ?? []
    // It is not a number without digits, or with an unknown unit.
    const value = Number(digits) * Number(units[unit])
    const isInRange = value >= min && value <= max
    if (!isInRange) {
      throw new Error(`must be ${expectation}`)
    }
    return value
  }
}

export function bytes(min: number, max: number): Parse<number> {
  const units = { '': 1, KiB: 2 ** 10, MiB: 2 ** 20 }
  const expectation = `a number of bytes from ${min} to ${max}, such as 65536, 64KiB or 1MiB`
  return amount(units, min, max, expectation)
}

// The settings that commands read, too.

/** Reads DATABASE_URL. */
export function storeUrl(text: string): string {
  parseStoreUrl(text)
  return text
}

/** Reads WAL_LIMIT. */
export const walLimit = bytes(2 ** 27, 2 ** 40)
export const walLimitDefault = '4096MiB'
