import dns from 'node:dns'
import * as http from 'node:http'
import * as https from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { type CourierLimits, isPublicAddress, type Post } from '@plant-store/webhooks'
import manifest from '../../package.json' with { type: 'json' }

/** Only the status of an answer is used. */
const answerBytesMax = 64 * 1024

const modules = { 'http:': http, 'https:': https }
type Protocol = keyof typeof modules

/**
 * Returns a function that sends one delivery and resolves to the status of the answer. Follows no redirect, ignores
 * proxies in the environment, and checks every address that it connects to.
 */
export function createPost({ deliveryTimeoutMs }: Pick<CourierLimits, 'deliveryTimeoutMs'>) {
  // A webhook without access to private addresses must not reuse a connection to one.
  const agents = [true, false].map(allowsPrivate => {
    const options = { keepAlive: true, timeout: deliveryTimeoutMs, lookup: lookUp(allowsPrivate) }
    return { 'http:': new http.Agent(options), 'https:': new https.Agent(options) }
  })

  return async (post: Post): Promise<number> => {
    const { hostname, protocol } = new URL(post.url)
    const host = hostname.replace(/^\[(.*)\]$/, '$1')
    if (isIP(host) !== 0) judge([host], post.allowsPrivate)
    const agent = agents[post.allowsPrivate ? 0 : 1]?.[protocol as Protocol] as https.Agent
    const timeout = new AbortController()
    const timer = setTimeout(() => timeout.abort(), deliveryTimeoutMs)
    const signal = AbortSignal.any([post.signal, timeout.signal])
    try {
      // A listener may close an idle connection at the moment of its reuse.
      return await exchange(post, agent, signal).catch(error => {
        if (error.isStale && error.code === 'ECONNRESET') return exchange(post, agent, signal)
        throw error
      })
    } catch (cause) {
      throw timeout.signal.aborted ? new Error(`no answer within ${deliveryTimeoutMs} ms`, { cause }) : cause
    } finally {
      clearTimeout(timer)
    }
  }
}

function exchange({ url, headers, body }: Post, agent: https.Agent, signal: AbortSignal): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = modules[new URL(url).protocol as Protocol].request(url, {
      method: 'POST',
      agent,
      signal,
      headers: {
        ...headers,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        'user-agent': `plant-store/${manifest.version}`,
      },
    })
    let status: number | undefined
    const end = (error = new Error('the listener closed the connection')) => {
      // The delivery was received, even if the rest of the answer is lost.
      if (status !== undefined) resolve(status)
      else reject(Object.assign(error, { isStale: request.reusedSocket }))
    }
    request.on('error', end).on('close', end)
    request.on('response', response => {
      status = response.statusCode as number
      let bytes = 0
      response.on('data', chunk => {
        bytes += chunk.length
        if (bytes > answerBytesMax) response.destroy()
      })
      response.on('error', end).on('close', end)
    })
    request.end(body)
  })
}

/** Checks the addresses of a name at each connection, as they may change in between. */
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

/** @throws Error for addresses that only a private network reaches, this machine included */
function judge(addresses: readonly string[], allowsPrivate: boolean): void {
  const refused = allowsPrivate ? undefined : addresses.find(address => !isPublicAddress(address))
  if (refused !== undefined)
    throw new Error(`${refused} is a private address: the webhook needs --allow-private`)
}
