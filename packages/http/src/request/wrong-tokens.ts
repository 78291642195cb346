import { hash } from 'node:crypto'
import ipaddr from 'ipaddr.js'

/** Counts a wrong access token of an address. Returns the seconds to wait if there were too many, otherwise 0. */
export type Throttle = (address: string) => number

const windowSeconds = 60n

/**
 * Returns a throttle against guessing tokens that people chose. (A minted token has 256 random bits.) It counts only
 * wrong tokens and refuses no right one, so networks that share a counter do not harm each other.
 *
 * @param wrongTokensMax for one network, within a minute of the first
 * @param counts eight bytes a network; threads with the same buffer count together
 */
export function createThrottle(
  wrongTokensMax: number,
  counts = new SharedArrayBuffer(64 * 1024),
): Throttle {
  // The high half is the second at which a window ends, the low half its wrong tokens.
  const windows = new BigInt64Array(counts)
  return address => {
    const at =
      hash('sha256', networkOf(address), 'buffer').readUInt32LE() % windows.length
    // Equal in all threads, and never set back.
    const now = process.hrtime.bigint() / 1_000_000_000n
    while (true) {
      const seen = Atomics.load(windows, at)
      const counted = seen >> 32n > now ? seen + 1n : ((now + windowSeconds) << 32n) | 1n
      if (Atomics.compareExchange(windows, at, seen, counted) !== seen) {
        continue
      }
      const wrong = BigInt.asUintN(32, counted)
      return wrong > wrongTokensMax ? Number((counted >> 32n) - now) : 0
    }
  }
}

/** Removes the port that some proxies write behind an address in X-Forwarded-For, and the brackets of IPv6. */
export function withoutPort(text: string): string {
  const [, ipv6, ipv4] = /^(?:\[(.*)\]|([\d.]+))(?::\d+)?$/.exec(text) ?? []
  return ipv6 ?? ipv4 ?? text
}

/** Returns the network of an address. An IPv6 customer has at least a /64. */
function networkOf(client: string): Uint8Array {
  const address = withoutPort(client)
  // A proxy can send anything.
  if (!ipaddr.isValid(address)) {
    return Buffer.from(`${address}`)
  }
  return Uint8Array.from(ipaddr.process(address).toByteArray().slice(0, 8))
}
