import { hash } from 'node:crypto'
import ipaddr from 'ipaddr.js'

/** Counts a wrong access token from an address. Returns 0, or the seconds to wait when there were too many. */
export type Throttle = (address: string) => number

const windowSeconds = 60n

/**
 * Against guessing tokens that people chose: one of ours has 256 random bits. Only wrong tokens are counted, so a good
 * one is never refused, and networks that happen to share a count do each other no harm.
 *
 * @param wrongTokensMax of one network, in a minute from the first of them
 * @param counts eight bytes a network; threads with the same buffer count together
 */
export function createThrottle(wrongTokensMax: number, counts = new SharedArrayBuffer(64 * 1024)): Throttle {
  // The second in which a window ends, and in the lower half the number of wrong tokens in it.
  const windows = new BigInt64Array(counts)
  return address => {
    const at = hash('sha256', networkOf(address), 'buffer').readUInt32LE() % windows.length
    // The same in all threads, and never set back.
    const now = process.hrtime.bigint() / 1_000_000_000n
    while (true) {
      const seen = Atomics.load(windows, at)
      const counted = seen >> 32n > now ? seen + 1n : ((now + windowSeconds) << 32n) | 1n
      if (Atomics.compareExchange(windows, at, seen, counted) !== seen) continue
      const wrong = BigInt.asUintN(32, counted)
      return wrong > wrongTokensMax ? Number((counted >> 32n) - now) : 0
    }
  }
}

/** A customer of an IPv6 provider has at least all addresses with the same first 64 bits. */
function networkOf(address: string): Uint8Array {
  // A proxy may send anything.
  if (!ipaddr.isValid(address)) return Buffer.from(`${address}`)
  return Uint8Array.from(ipaddr.process(address).toByteArray().slice(0, 8))
}
