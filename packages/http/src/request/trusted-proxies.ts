import { isIP } from 'node:net'
import proxyAddr from '@fastify/proxy-addr'
import type { FastifyRequest } from 'fastify'

/**
 * How many addresses of X-Forwarded-For are followed. A long list from a client would
 * take milliseconds.
 */
const proxyHopsMax = 16

/** Returns whether an address is that of a proxy whose X-Forwarded-For is trusted. */
export function trustNearest(proxies: readonly string[]) {
  const isTrusted = proxyAddr.compile([...proxies])
  return (address: string, hop: number): boolean =>
    hop < proxyHopsMax && isTrusted(withoutPort(address), hop)
}

/**
 * Returns the address of the client, for the log. What is no address in X-Forwarded-For
 * may be any text of the client's, so the nearest proxy stands for it.
 */
export function clientOf({
  ip,
  socket: { remoteAddress },
}: Pick<FastifyRequest, 'ip' | 'socket'>): string | undefined {
  if (ip === remoteAddress) {
    return ip
  }
  const address = withoutPort(ip)
  return isIP(address) === 0 ? remoteAddress : address
}

/**
 * Removes the port that some proxies write behind an address in X-Forwarded-For, and the
 * brackets of IPv6.
 */
function withoutPort(text: string) {
  const [, ipv6, ipv4] = /^(?:\[(.*)\]|([\d.]+))(?::\d+)?$/.exec(text) ?? []
  return ipv6 ?? ipv4 ?? text
}
