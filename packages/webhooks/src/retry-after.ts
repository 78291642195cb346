/**
 * Returns the milliseconds that a Retry-After field asks to wait, which is in seconds or
 * a date (RFC 9110, 10.2.3).
 *
 * @returns undefined without a field, or if it is neither
 */
export function parseRetryAfter(
  field: string | undefined,
  nowMs: number,
): number | undefined {
  if (field === undefined) {
    return undefined
  }
  if (/^\d+$/.test(field)) {
    return Number(field) * 1000
  }
  // JavaScript parses much else as a date, such as -5.
  const isDate = /^[A-Z][a-z]+,? .*\d\d:\d\d:\d\d/.test(field)
  const atMs = Date.parse(field)
  if (!isDate || Number.isNaN(atMs)) {
    return undefined
  }
  return Math.max(0, atMs - nowMs)
}
