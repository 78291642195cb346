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
/** The least time between two fetches for tokens with unknown keys, and after a fetch that failed. */
const cooldownMs = 5000
/** The age up to which keys are used while the provider does not answer. */
const staleMaxMs = 3_600_000
const fetchTimeoutMs = 5000
const keySetBytesMax = 256 * 1024
const keysMax = 100

export interface KeySetOptions {
  /** Called with the reason when fetching the keys begins to fail, and without one when it works again. */
  readonly onFailureChange?: (reason?: string) => void
  /** Ends a pending fetch. */
  readonly signal?: AbortSignal
}

export type KeySet = ReturnType<typeof openKeySet>

export function openKeySet(url: URL, { signal, onFailureChange }: KeySetOptions) {
  let failedAtMs = Number.NEGATIVE_INFINITY
  let isFailing = false
  const fail = ({ message, cause }: Error) => {
    // Reported once, however often it fails. The message of `fetch` says only that it failed.
    if (!isFailing) {
      onFailureChange?.(cause instanceof Error ? `${message}: ${cause.message}` : message)
    }
    isFailing = true
    return unavailable()
  }

  const fetchKeys: FetchImplementation = async (href, options) => {
    // jose waits between fetches that succeed, not after one that fails.
    if (performance.now() - failedAtMs < cooldownMs) {
      throw unavailable()
    }
    try {
      const ended =
        signal === undefined ? options.signal : AbortSignal.any([options.signal, signal])
      const keys = await readKeys(await fetch(href, { ...options, signal: ended }))
      if (isFailing) {
        onFailureChange?.()
      }
      isFailing = false
      return Response.json(keys)
    } catch (error) {
      failedAtMs = performance.now()
      throw fail(error as Error)
    }
  }

  // jose writes the keys and the time of each fetch into it.
  const cache: Partial<ExportedJWKSCache> = {}
  const find = createRemoteJWKSet(url, {
    cacheMaxAge: staleMaxMs,
    cooldownDuration: cooldownMs,
    timeoutDuration: fetchTimeoutMs,
    [customFetch]: fetchKeys,
    [jwksCache]: cache as JWKSCacheInput,
  })
  const refresh = () => void find.reload().catch(() => {})

  refresh()
  return {
    /** Returns the keys of the latest fetch while they may be used, and refreshes them when they get old. */
    current() {
      const ageMs = Date.now() - (cache.uat ?? 0)
      // Negative if the clock was set back.
      if (ageMs >= refreshAfterMs || ageMs < 0) {
        refresh()
      }
      return find.fresh ? cache.jwks : undefined
    },
    /** Rejects with `access-unavailable` if a token's key needs a fetch and the provider does not answer. */
    find,
    /** Records that a key cannot be used, and returns the error for the request. */
    fail,
  }
}

const unavailable = () =>
  new AccessError(
    'access-unavailable',
    'the access token cannot be checked: the identity provider is unavailable',
  )

async function readKeys({ status, body }: Response): Promise<unknown> {
  if (status !== 200) {
    await body?.cancel()
    throw new Error(`it answered ${status}`)
  }
  const decoder = new TextDecoder()
  let bytes = 0
  let text = ''
  for await (const chunk of body ?? []) {
    bytes += chunk.length
    if (bytes > keySetBytesMax) {
      throw new Error(`its answer is longer than ${keySetBytesMax} bytes`)
    }
    text += decoder.decode(chunk, { stream: true })
  }
  const keySet = JSON.parse(text)
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
