import { setTimeout } from 'node:timers/promises'
import { AccessError } from '@plant-store/access'
import { createLocalJWKSet, errors, type JWTVerifyGetKey } from 'jose'
import type { JwtLimits } from './limits.ts'

export type KeySetState = { readonly ready: true } | { readonly ready: false; readonly reason: string }

export interface KeySetOptions {
  readonly url: URL
  readonly limits: JwtLimits
  readonly signal: AbortSignal | undefined
  readonly onStateChange: (state: KeySetState) => void
}

/** The provider's public keys as of one fetch. */
interface Keys {
  readonly find: JWTVerifyGetKey
  readonly fetchedAtMs: number
  /** The fetch's number, from 1. */
  readonly fetch: number
}

export interface KeySet {
  /** Returns the keys while they may be used, and refreshes them when they get old. */
  current(): Keys | undefined
  /**
   * Finds the key of a token. Rejects with `access-unavailable` if that needs a fetch and the provider does not answer.
   */
  readonly find: JWTVerifyGetKey
  /** Records that a key cannot be used, and returns the error for the request. */
  fail(error: Error): AccessError
}

export function openKeySet({ url, limits, signal, onStateChange }: KeySetOptions): KeySet {
  let latest: Keys | undefined
  let fetches = 0
  let attemptedAtMs = Number.NEGATIVE_INFINITY
  let isFailing = false
  let pending: Promise<Keys> | undefined

  const fail = (error: Error) => {
    // Reported once, however often it fails.
    if (!isFailing) onStateChange({ ready: false, reason: reasonOf(error) })
    isFailing = true
    return unavailable()
  }

  /** Concurrent callers share one fetch. */
  const fetchAgain = () => {
    pending ??= fetchInTurn().finally(() => {
      pending = undefined
    })
    return pending
  }

  const fetchInTurn = async () => {
    const waitMs = attemptedAtMs + limits.cooldownMs - performance.now()
    if (waitMs > 0) {
      if (isFailing) throw unavailable()
      // The provider may have a new key, so an immediate refusal could be wrong.
      await setTimeout(waitMs, undefined, { signal }).catch(() => {
        throw unavailable()
      })
    }
    attemptedAtMs = performance.now()
    fetches++
    try {
      const find = await fetchKeys(url, limits, signal)
      latest = { find, fetchedAtMs: attemptedAtMs, fetch: fetches }
    } catch (error) {
      throw fail(error as Error)
    }
    if (isFailing) onStateChange({ ready: true })
    isFailing = false
    return latest
  }
  const fetchBesides = () => void fetchAgain().catch(() => {})

  const current = () => {
    if (latest === undefined) return undefined
    const ageMs = performance.now() - latest.fetchedAtMs
    if (ageMs >= limits.refreshAfterMs) fetchBesides()
    return ageMs < limits.staleMaxMs ? latest : undefined
  }

  fetchBesides()
  return {
    current,
    fail,
    async find(header, token) {
      const before = fetches
      let keys = current() ?? (await fetchAgain())
      while (true) {
        try {
          return await keys.find(header, token)
        } catch (error) {
          // A fetch that began after the request did not have the key either.
          if (!(error instanceof errors.JWKSNoMatchingKey) || keys.fetch > before) throw error
        }
        keys = await fetchAgain()
      }
    },
  }
}

const unavailable = () =>
  new AccessError(
    'access-unavailable',
    'the access token cannot be checked: the identity provider is unavailable',
  )

async function fetchKeys(
  url: URL,
  { fetchTimeoutMs, keySetBytesMax }: JwtLimits,
  signal: AbortSignal | undefined,
): Promise<JWTVerifyGetKey> {
  const timeout = AbortSignal.timeout(fetchTimeoutMs)
  const response = await fetch(url, {
    // A redirect could lead anywhere.
    redirect: 'manual',
    headers: { accept: 'application/jwk-set+json, application/json' },
    signal: signal === undefined ? timeout : AbortSignal.any([timeout, signal]),
  })
  if (response.status !== 200) {
    await response.body?.cancel()
    throw new Error(`it answered ${response.status}`)
  }
  const keySet = JSON.parse(await readText(response, keySetBytesMax))
  const find = createLocalJWKSet(keySet)
  if (keySet.keys.length === 0) throw new Error('it has no keys')
  return find
}

async function readText({ body }: Response, bytesMax: number): Promise<string> {
  const decoder = new TextDecoder()
  let bytes = 0
  let text = ''
  for await (const chunk of body ?? []) {
    bytes += chunk.length
    if (bytes > bytesMax) throw new Error(`its answer is longer than ${bytesMax} bytes`)
    text += decoder.decode(chunk, { stream: true })
  }
  return text
}

/** The message of `fetch` says only that it failed. Its cause has the reason. */
function reasonOf({ message, cause }: Error): string {
  return cause instanceof Error ? `${message}: ${cause.message}` : message
}
