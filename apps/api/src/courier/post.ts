import dns from 'node:dns'
import * as http from 'node:http'
import * as https from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import type { CourierLimits, Post } from '@plant-store/webhooks'
import ipaddr from 'ipaddr.js'
import manifest from '../../package.json' with { type: 'json' }

/** Of an answer. The status is all that is used of it. */
const answerBytesMax = 64 * 1024

const modules = { 'http:': http, 'https:': https }

/**
 * Returns a function that sends one delivery and resolves to the status of the answer. It follows no redirect, uses no
 * proxy of the environment, and judges every address that it connects to.
 */
export function createPost({ deliveryTimeoutMs }: Pick<CourierLimits, 'deliveryTimeoutMs'>) {
  // A connection to a private address must not serve a webhook that may not use one.
  const agents = [true, false].map(allowsPrivate => {
    const options = { keepAlive: true, timeout: deliveryTimeoutMs, lookup: lookUp(allowsPrivate) }
    return { 'http:': new http.Agent(options), 'https:': new https.Agent(options) }
  })

  return async (post: Post): Promise<number> => {
    const { protocol, hostname } = new URL(post.url)
    const host = hostname.replace(/^\[(.*)\]$/, '$1')
    if (isIP(host) !== 0) judge([host], post.allowsPrivate)
    const timeout = AbortSignal.timeout(deliveryTimeoutMs)
    const known = protocol as keyof typeof modules
    const send = () =>
      new Promise<number>((resolve, reject) => {
        const body = Buffer.from(post.body)
        const request = modules[known].request(post.url, {
          method: 'POST',
          agent: agents[post.allowsPrivate ? 0 : 1]?.[known] as https.Agent,
          signal: AbortSignal.any([post.signal, timeout]),
          headers: {
            ...post.headers,
            'content-type': 'application/json',
            'content-length': body.length,
            'user-agent': `plant-store/${manifest.version}`,
          },
        })
        let status: number | undefined
        const end = (error: Error) => {
          // It was received, even where the rest of the answer is cut.
          if (status !== undefined) resolve(status)
          else reject(Object.assign(error, { isStale: request.reusedSocket }))
        }
        request.on('error', end)
        request.on('response', response => {
          status = response.statusCode as number
          let bytes = 0
          response.on('data', chunk => {
            bytes += chunk.length
            if (bytes > answerBytesMax) response.destroy()
          })
          response.on('error', end)
          response.on('close', end)
        })
        request.end(body)
      })
    try {
      // A listener may close a connection that waits, at the moment at which it is used again.
      return await send().catch(error => {
        if (error.isStale && error.code === 'ECONNRESET') return send()
        throw error
      })
    } catch (error) {
      throw timeout.aborted ? new Error(`no answer within ${deliveryTimeoutMs} ms`, { cause: error }) : error
    }
  }
}

/** Judges the addresses of a name at each connection, as they may change in between. */
const lookUp =
  (allowsPrivate: boolean): LookupFunction =>
  (hostname, options, callback) =>
    dns.lookup(hostname, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, '')
      try {
        judge(
          found.map(({ address }) => address),
          allowsPrivate,
        )
      } catch (refused) {
        return callback(refused as Error, '')
      }
      if (options.all) callback(null, found)
      else callback(null, found[0]?.address ?? '', found[0]?.family)
    })

/** @throws Error for addresses that only a private network reaches, this machine among them */
function judge(addresses: readonly string[], allowsPrivate: boolean): void {
  const refused = allowsPrivate ? undefined : addresses.find(address => !isPublic(ipaddr.process(address)))
  if (refused !== undefined)
    throw new Error(`${refused} is a private address: the webhook needs --allow-private`)
}

const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3')

function isPublic(address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  return address.range() === 'unicast' && (address.kind() === 'ipv4' || address.match(globalUnicast))
}
