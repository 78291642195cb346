import ipaddr from 'ipaddr.js'

/** All public IPv6 addresses are in this network, but those of translators. */
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3')

/**
 * The networks whose IPv6 addresses lead to the IPv4 address within them, with its
 * position among the 16 octets.
 *
 * A local NAT64 may also use the rest of 64:ff9b:1::/48, where the position of the IPv4
 * address is unknown, so addresses there are not public. Neither are those of Teredo,
 * which is no longer in use.
 */
const translatedNetworks = [
  // IPv4-mapped (RFC 4291)
  { cidr: '::ffff:0:0/96', ipv4At: 12 },
  // IPv4-translated (RFC 7915)
  { cidr: '::ffff:0:0:0/96', ipv4At: 12 },
  // NAT64 (RFC 6052)
  { cidr: '64:ff9b::/96', ipv4At: 12 },
  // local NAT64 (RFC 8215)
  { cidr: '64:ff9b:1::/96', ipv4At: 12 },
  // 6to4 (RFC 3056)
  { cidr: '2002::/16', ipv4At: 2 },
].map(({ cidr, ipv4At }) => ({ network: ipaddr.IPv6.parseCIDR(cidr), ipv4At }))

/**
 * Returns whether more than this machine and private networks can reach an IP address.
 */
export function isPublicAddress(text: string): boolean {
  const address = ipaddr.parse(text)
  if (address instanceof ipaddr.IPv4) {
    return address.range() === 'unicast'
  }
  const translated = translatedNetworks.find(({ network }) => address.match(network))
  if (translated === undefined) {
    return address.range() === 'unicast' && address.match(globalUnicast)
  }
  const { ipv4At } = translated
  const ipv4 = new ipaddr.IPv4(address.toByteArray().slice(ipv4At, ipv4At + 4))
  return ipv4.range() === 'unicast'
}
