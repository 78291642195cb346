import { once } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import { AccessError } from '@plant-store/access'
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  type ExportedJWKSCache,
  type FetchImplementation,
  type JWKSCacheInput,
  jwksCache,
} from 'jose'

/** The age at which the keys are refreshed in the background. */
const refreshAfterMs = 300_000
/** The least time between two fetches for unknown keys, and after a fetch that failed. */
const cooldownMs = 5000
/** The age up to which keys are used while the provider does not answer. */
const staleMaxMs = 3_600_000
const fetchTimeoutMs = 5000
/** The largest body, and the largest header section. */
const answerBytesMax = 256 * 1024
const keysMax = 100

export interface KeySetOptions {
  /**
   * Called with the error when the keys begin to be unavailable or unusable, and without
   * one once they were fetched again.
   */
  readonly onFailureChange?: (error?: Error) => void
  /** Ends a pending fetch. */
  readonly signal?: AbortSignal
}

export type KeySet = ReturnType<typeof openKeySet>

export function openKeySet(url: URL, options: KeySetOptions) {
  const fetching = createFetch(options)
  // jose writes the keys and the time of each fetch into it.
  const cache: Partial<ExportedJWKSCache> = {}
  const find = createRemoteJWKSet(url, {
    cacheMaxAge: staleMaxMs,
    cooldownDuration: cooldownMs,
    timeoutDuration: fetchTimeoutMs,
    [customFetch]: fetching.fetch,
    // It may be empty at first, which jose's type does not say.
    [jwksCache]: cache as JWKSCacheInput,
  })
  // A failure was reported by `fetch`.
  const refresh = () => void find.reload().catch(() => {})

  refresh()
  return {
    /**
     * Returns the keys of the latest fetch while they may be used, and refreshes them
     * when they get old. The object is another after each fetch, even of equal keys.
     */
    current() {
      const ageMs = Date.now() - (cache.uat ?? 0)
      const wasClockSetBack = ageMs < 0
      if (ageMs >= refreshAfterMs || wasClockSetBack) {
        refresh()
      }
      return find.fresh ? cache.jwks : undefined
    },
    /**
     * Rejects with `access-unavailable` if a key must be fetched and the provider fails.
     */
    find,
    /** Records that a key cannot be used, and returns the error for the request. */
    unusable: fetching.fail,
  }
}

/**
 * Returns what fetches the keys, and `fail`, which reports a failure, once however often
 * it happens, and returns the error for the request.
 */
function createFetch({ signal, onFailureChange }: KeySetOptions) {
  let failedAtMs = Number.NEGATIVE_INFINITY
  let isFailing = false

  const note = (error?: Error) => {
    const hasFailed = error !== undefined
    if (hasFailed !== isFailing) {
      isFailing = hasFailed
      onFailureChange?.(error)
    }
  }
  const fail = (error: unknown): AccessError => {
    if (error instanceof AccessError) {
      return error
    }
    note(error as Error)
    return unavailableError()
  }

  const fetchKeys: FetchImplementation = async (href, options) => {
    // jose waits after a fetch that succeeds, and not after one that fails.
    if (performance.now() - failedAtMs < cooldownMs) {
      throw unavailableError()
    }
    const signals = [options.signal, signal].filter(each => each !== undefined)
    const ending = AbortSignal.any(signals)
    try {
      const keys = parseKeys(await get(href, options.headers, ending))
      note()
      return Response.json(keys)
    } catch (error) {
      failedAtMs = performance.now()
      throw fail(ending.aborted ? ending.reason : error)
    }
  }
  return { fetch: fetchKeys, fail }
}

function unavailableError() {
  return new AccessError(
    'access-unavailable',
    'the access token cannot be checked: the identity provider is unavailable',
  )
}

/**
 * Resolves to the body at a URL. Follows no redirect. `fetch` would refuse header
 * sections above 16 KiB.
 */
async function get(href: string, headers: Headers, signal: AbortSignal) {
  const client = href.startsWith('https:') ? https : http
  const request = client.get(href, {
    headers: { ...Object.fromEntries(headers), connection: 'close' },
    maxHeaderSize: answerBytesMax,
    signal,
  })
  // An error after the header section is one of the body, too.
  request.on('error', () => {})
  const [response] = await once(request, 'response')
  if (response.statusCode !== 200) {
    response.destroy()
    throw new Error(`it answered ${response.statusCode}`)
  }

  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of response) {
    bytes += chunk.length
    if (bytes > answerBytesMax) {
      throw new Error(`its answer is longer than ${answerBytesMax} bytes`)
    }
    chunks.push(chunk)
  }
  return new TextDecoder().decode(Buffer.concat(chunks))
}

function parseKeys(text: string): unknown {
  const keySet = JSON.parse(text, asJoseTakesIt)
  // Throws if it is no key set.
  createLocalJWKSet(keySet)
  const count = keySet.keys.length
  if (count === 0) {
    throw new Error('it has no keys')
  }
  if (count > keysMax) {
    throw new Error(`it has more than ${keysMax} keys`)
  }
  return keySet
}

/**
 * Removes members that are null, and the other operations of a key that may verify
 * (RFC 7517, 4.3).
 */
function asJoseTakesIt(name: string, value: unknown): unknown {
  if (name === 'key_ops' && Array.isArray(value) && value.includes('verify')) {
    return ['verify']
  }
  return value ?? undefined
}
