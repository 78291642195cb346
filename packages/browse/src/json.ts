/**
 * Reads and writes exact integers with what browsers have for it. The build puts this in
 * the place of `@plant-store/json`, which also serves programs that lack it.
 */

declare global {
  interface JSON {
    rawJSON(text: string): object
  }
}

/** Whether the browser can do so: Chromium 114, Firefox 135, Safari 18.4, or newer. */
export const isExact = 'rawJSON' in JSON

export function parseJsonRecord(text: string): unknown {
  return JSON.parse(text, readExactly)
}

export function writeJsonRecord(record: object): string {
  return JSON.stringify(record, (_name, value: unknown) =>
    typeof value === 'bigint' ? JSON.rawJSON(`${value}`) : value,
  )
}

function readExactly(_name: string, value: unknown, context?: { source: string }) {
  const isInteger = typeof value === 'number' && /^-?\d+$/.test(`${context?.source}`)
  return isInteger ? BigInt(`${context?.source}`) : value
}
