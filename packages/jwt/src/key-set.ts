import { setTimeout } from 'node:timers/promises'
import { AccessError } from '@plant-store/access'
import { createLocalJWKSet, errors, type JWTVerifyGetKey } from 'jose'
import type { JwtLimits } from './limits.ts'

/** Whether the provider's keys could be fetched. */
export type KeySetState = { readonly ready: true } | { readonly ready: false; readonly reason: string }

export interface KeySetOptions {
  readonly url: URL
  readonly limits: JwtLimits
  readonly signal: AbortSignal | undefined
  readonly onStateChange: (state: KeySetState) => void
}

/** The public keys of an identity provider, as they were fetched at one time. */
interface Keys {
  readonly find: JWTVerifyGetKey
  readonly fetchedAtMs: number
  /** The number of the fetch, from 1. */
  readonly fetch: number
}

export interface KeySet {
  /** Returns the keys at hand while they may be used, and has them fetched again when they get old. */
  current(): Keys | undefined
  /** Finds the key of a token. Rejects with `access-unavailable` when the provider would have to be asked and does not answer. */
  readonly find: JWTVerifyGetKey
  /** Notes that a key cannot be used, and returns what to answer meanwhile. */
  fail(error: Error): AccessError
}

/** Begins to fetch the keys. */
export function openKeySet({ url, limits, signal, onStateChange }: KeySetOptions): KeySet {
  let latest: Keys | undefined
  let fetches = 0
  let attemptedAtMs = Number.NEGATIVE_INFINITY
  let isFailing = false
  let pending: Promise<Keys> | undefined

  const fail = (error: Error) => {
    // Once, however often it fails.
    if (!isFailing) onStateChange({ ready: false, reason: reasonOf(error) })
    isFailing = true
    return unavailable()
  }

  /** All who need it wait for the same fetch. */
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
      // An answer now could be wrong: the provider may have a new key.
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
    const nowMs = performance.now()
    const ageMs = nowMs - latest.fetchedAtMs
    if (ageMs >= limits.refreshAfterMs && nowMs - attemptedAtMs >= limits.cooldownMs) fetchBesides()
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
          // Where a fetch that began since does not have it, nobody has.
          if (!(error instanceof errors.JWKSNoMatchingKey) || keys.fetch > before) throw error
        }
        keys = await fetchAgain()
      }
    },
  }
}

const unavailable = () =>
  new AccessError('access-unavailable', 'the access token cannot be checked: the identity provider fails')

async function fetchKeys(
  url: URL,
  { fetchTimeoutMs, keySetBytesMax }: JwtLimits,
  signal: AbortSignal | undefined,
): Promise<JWTVerifyGetKey> {
  const timeout = AbortSignal.timeout(fetchTimeoutMs)
  const response = await fetch(url, {
    // A redirection could lead anywhere.
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
    if (bytes > bytesMax) throw new Error(`it answered more than ${bytesMax} bytes`)
    text += decoder.decode(chunk, { stream: true })
  }
  return text
}

/** `fetch` itself says only that it failed. */
function reasonOf({ message, cause }: Error): string {
  return cause instanceof Error ? `${message}: ${cause.message}` : message
}
