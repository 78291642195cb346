import dns from 'node:dns'
import * as http from 'node:http'
import * as https from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { explain } from '@plant-store/persistence'
import { courierLimits, isPublicAddress, type Post } from '@plant-store/webhooks'
import { version } from '../version.ts'

/** Only the status of an answer is used. */
const answerBytesMax = 64 * 1024

const clients = { 'http:': http, 'https:': https }
type Protocol = keyof typeof clients

// A webhook without access to private addresses must not reuse a connection to one.
const agents = { private: createAgents(true), public: createAgents(false) }

function createAgents(allowsPrivate: boolean): Readonly<Record<Protocol, http.Agent>> {
  const options = {
    keepAlive: true,
    timeout: courierLimits.deliveryTimeoutMs,
    // `lookup` is asked for all addresses.
    autoSelectFamily: true,
    lookup: lookUp(allowsPrivate),
  }
  return { 'http:': new http.Agent(options), 'https:': new https.Agent(options) }
}

/**
 * Sends one delivery and resolves to the status of the answer. Follows no redirect, ignores proxies in the environment,
 * and checks every address that it connects to.
 */
export async function sendWebhook(
  post: Post,
  timeoutMs = courierLimits.deliveryTimeoutMs,
): Promise<number> {
  const { hostname } = new URL(post.url)
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  const refused =
    isIP(host) === 0 ? null : privateAddressError([host], post.allowsPrivate)
  if (refused !== null) {
    throw refused
  }
  const timeout = AbortSignal.timeout(timeoutMs)
  const signal = AbortSignal.any([post.signal, timeout])
  try {
    // A listener may close an idle connection at the moment of its reuse.
    return await sendOnce(post, signal).catch(error => {
      if (error.isStale && error.code === 'ECONNRESET') {
        return sendOnce(post, signal)
      }
      throw error
    })
  } catch (cause) {
    const reason = timeout.aborted
      ? `no answer within ${timeoutMs} ms`
      : explain(cause as Error)
    throw new Error(reason, { cause })
  }
}

function sendOnce(
  { url, allowsPrivate, headers, body }: Post,
  signal: AbortSignal,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const protocol = new URL(url).protocol as Protocol
    const request = clients[protocol].request(url, {
      method: 'POST',
      agent: agents[allowsPrivate ? 'private' : 'public'][protocol],
      signal,
      headers: {
        ...headers,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        'user-agent': `plant-store/${version}`,
      },
    })
    let status: number | undefined
    const end = (error = new Error('the listener closed the connection')) => {
      // The delivery was received, even if the rest of the answer is lost.
      if (status !== undefined) {
        resolve(status)
      } else {
        reject(Object.assign(error, { isStale: request.reusedSocket }))
      }
    }
    request.on('error', end).on('close', end)
    request.on('response', response => {
      status = response.statusCode as number
      let bytes = 0
      response.on('data', chunk => {
        bytes += chunk.length
        if (bytes > answerBytesMax) {
          response.destroy()
        }
      })
      response.on('error', end).on('close', end)
    })
    request.end(body)
  })
}

/** Checks the addresses of a name at each connection, as they may change in between. */
function lookUp(allowsPrivate: boolean): LookupFunction {
  return (hostname, options, callback) =>
    dns.lookup(hostname, { ...options, all: true }, (error, found) => {
      const addresses = () => found.map(({ address }) => address)
      callback(error ?? privateAddressError(addresses(), allowsPrivate), found)
    })
}

/** Returns an error for addresses that only a private network reaches, this machine included. */
function privateAddressError(
  addresses: readonly string[],
  allowsPrivate: boolean,
): Error | null {
  const refused = allowsPrivate
    ? undefined
    : addresses.find(address => !isPublicAddress(address))
  if (refused === undefined) {
    return null
  }
  return new Error(`${refused} is a private address: the webhook needs --allow-private`)
}
