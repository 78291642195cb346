import { isIPv6 } from 'node:net'

/**
 * Turns addresses away that present one wrong access token after the other. A guess among 2^256 tokens is hopeless
 * anyway; this is for tokens that people chose, and keeps guesses from costing look-ups and lines of the log.
 */
export interface Throttle {
  /**
   * Of a request whose token must be looked up.
   *
   * @returns seconds until the address may try again; 0 when it may now
   */
  secondsToWait(address: string, token: string): number
  /** A token from the address was wrong. */
  failed(address: string): void
  /** A token was good: whoever has it is let through, whatever others at the same address try. */
  succeeded(token: string): void
}

export interface ThrottleLimits {
  /** Wrong tokens from one address before it must wait. */
  readonly wrongTokensMax: number
  /** For how long they count, from the first. */
  readonly windowMs?: number
  /** Addresses that are remembered; past it the oldest is forgotten. */
  readonly addressesMax?: number
  /** Good tokens that are remembered, in the same way. */
  readonly tokensMax?: number
}

export function createThrottle({
  wrongTokensMax,
  windowMs = 60_000,
  addressesMax = 10_000,
  tokensMax = 10_000,
}: ThrottleLimits): Throttle {
  const windows = new Map<string, { wrong: number; readonly endsAtMs: number }>()
  const goodTokens = new Map<string, true>()

  return {
    secondsToWait(address, token) {
      if (windows.size === 0) return 0
      const key = networkOf(address)
      const window = windows.get(key)
      if (window === undefined) return 0
      const leftMs = window.endsAtMs - performance.now()
      if (leftMs <= 0) windows.delete(key)
      return leftMs <= 0 || window.wrong < wrongTokensMax || goodTokens.has(token)
        ? 0
        : Math.ceil(leftMs / 1_000)
    },
    failed(address) {
      const key = networkOf(address)
      const window = windows.get(key)
      if (window !== undefined && window.endsAtMs > performance.now()) {
        window.wrong++
        return
      }
      windows.delete(key)
      keep(windows, key, { wrong: 1, endsAtMs: performance.now() + windowMs }, addressesMax)
    },
    succeeded(token) {
      goodTokens.delete(token)
      keep(goodTokens, token, true, tokensMax)
    },
  }
}

function keep<Value>(map: Map<string, Value>, key: string, value: Value, sizeMax: number): void {
  const [oldest] = map.keys()
  if (map.size >= sizeMax && oldest !== undefined) map.delete(oldest)
  map.set(key, value)
}

/** One customer of an IPv6 provider has at least all addresses that share their first 64 bits. */
function networkOf(address: string): string {
  if (!isIPv6(address) || address.startsWith('::ffff:')) return address
  const [before = '', after] = address.split('::')
  const head = before === '' ? [] : before.split(':')
  const tail = after === undefined || after === '' ? [] : after.split(':')
  const zeros = after === undefined ? 0 : Math.max(0, 8 - head.length - tail.length)
  return [...head, ...Array.from({ length: zeros }, () => '0'), ...tail].slice(0, 4).join(':')
}
