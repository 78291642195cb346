import dns from 'node:dns'
import * as http from 'node:http'
import * as https from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { finished } from 'node:stream/promises'
import { codeOf, messageOf } from '@plant-store/engine'
import {
  courierLimits,
  isPublicAddress,
  type Post,
  type PostAnswer,
  parseRetryAfter,
} from '@plant-store/webhooks'
import { version } from '../version.ts'
import { answerLimits, limitReading } from './limit-reading.ts'

const clients = { 'http:': http, 'https:': https }
type Protocol = keyof typeof clients

/**
 * Sends one delivery and resolves to the answer. Follows no redirect, ignores proxies in
 * the environment, and checks every address that it connects to.
 *
 * @throws Error that says in words why there is no answer
 */
export async function sendWebhook(
  post: Post,
  timeoutMs = courierLimits.deliveryTimeoutMs,
): Promise<PostAnswer> {
  const timeout = AbortSignal.timeout(timeoutMs)
  const signal = AbortSignal.any([post.signal, timeout])
  try {
    const host = new URL(post.url).hostname.replace(/^\[(.*)\]$/, '$1')
    // An address is not looked up, so it is judged here.
    const refusal =
      post.allowsPrivate || isIP(host) === 0 ? null : privateAddressError([host])
    if (refusal !== null) {
      throw refusal
    }
    return await sendAgainIfStale(post, signal)
  } catch (cause) {
    if (timeout.aborted) {
      throw new Error(`no answer within ${timeoutMs} ms`, { cause })
    }
    throw new Error(messageOf(cause), { cause })
  }
}

/** A listener may close an idle connection at the moment of its reuse. */
async function sendAgainIfStale(post: Post, signal: AbortSignal): Promise<PostAnswer> {
  const request = requestOf(post, signal)
  try {
    return await answerTo(request, post.body)
  } catch (error) {
    // The system reports one of the two, depending on the moment.
    const isClosed = ['ECONNRESET', 'EPIPE'].includes(codeOf(error))
    if (isClosed && request.reusedSocket) {
      return answerTo(requestOf(post, signal), post.body)
    }
    throw error
  }
}

async function answerTo(request: http.ClientRequest, body: string): Promise<PostAnswer> {
  let isExcessive = false
  limitReading(request, () => {
    isExcessive = true
  })
  const responding = Promise.withResolvers<http.IncomingMessage>()
  request.on('response', responding.resolve)
  request.on('error', responding.reject)
  request.on('close', () => {
    responding.reject(new Error('the listener closed the connection'))
  })
  request.end(body)

  const response = await responding.promise
  // Once its body was read, the connection can be reused. The delivery was received,
  // even if the rest of the answer is lost.
  await finished(response.resume()).catch(() => {})
  const retryAfterMs = parseRetryAfter(response.headers['retry-after'], Date.now())
  // An answer to a request has a status.
  return { status: Number(response.statusCode), retryAfterMs, isExcessive }
}

function requestOf(
  { url, allowsPrivate, headers, body }: Post,
  signal: AbortSignal,
): http.ClientRequest {
  const protocol = new URL(url).protocol as Protocol
  const usableAgents = allowsPrivate ? agents.private : agents.public
  return clients[protocol].request(url, {
    method: 'POST',
    agent: usableAgents[protocol],
    signal,
    maxHeaderSize: answerLimits.bytesMax,
    headers: {
      ...headers,
      // Any content is welcome, because none is read.
      accept: '*/*',
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'user-agent': `plant-store/${version}`,
    },
  })
}

/** Checks the addresses of a name at each connection, as they may change in between. */
const lookUpPublic: LookupFunction = (hostname, options, callback) => {
  dns.lookup(hostname, { ...options, all: true }, (error, addresses) => {
    const refusal = error ?? privateAddressError(addresses.map(({ address }) => address))
    callback(refusal, addresses)
  })
}

// A webhook without access to private addresses must not reuse a connection to one.
const agents = { private: createAgents(), public: createAgents(lookUpPublic) }

function createAgents(lookup?: LookupFunction) {
  const options = {
    keepAlive: true,
    timeout: courierLimits.deliveryTimeoutMs,
    // Makes Node pass all addresses of a name to `lookup`.
    autoSelectFamily: true,
    // Node gives up an address after 250 ms, which is little for a listener far away and
    // for a busy machine. The delivery then fails if the next address refuses.
    autoSelectFamilyAttemptTimeout: 5_000,
    ...(lookup && { lookup }),
  }
  return { 'http:': new http.Agent(options), 'https:': new https.Agent(options) }
}

/**
 * Returns an error for addresses that only a private network reaches, this machine
 * included.
 */
function privateAddressError(addresses: readonly string[]): Error | null {
  const refused = addresses.find(address => !isPublicAddress(address))
  if (refused === undefined) {
    return null
  }
  return new Error(`${refused} is a private address: the webhook needs --allow-private`)
}
