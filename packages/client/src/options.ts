export interface ClientOptions {
  /** The part before the paths of the description, such as `/plants`. */
  readonly baseUrl: string | URL
  /** The access token, or a function that returns the current one. */
  readonly token: string | (() => string | Promise<string>)
  /** Sends requests. By default it is the `fetch` of the runtime. */
  readonly fetch?: Fetch | undefined
  /**
   * The time of each attempt, from fetching the token to the last byte. By default
   * 10,000. At most 2,147,483,647 (24.8 days), or `Infinity` for no limit.
   */
  readonly timeoutMs?: number | undefined
  /** The number of attempts, the first one included. At least 1, by default 4. */
  readonly attemptsMax?: number | undefined
}

/** The part of `fetch` that the client needs. Wrappers and those of packages fit. */
export type Fetch = (url: string, init: FetchInit) => Promise<FetchedAnswer>

export interface FetchInit {
  readonly method: string
  readonly headers: Record<string, string>
  readonly body: string | null
  readonly redirect: 'manual'
  readonly signal: AbortSignal
}

export interface FetchedAnswer {
  readonly status: number
  readonly headers: AnswerHeaders
  text(): Promise<string>
}

/** The header fields of an answer. */
export interface AnswerHeaders {
  get(name: string): string | null
}

/** A longer timer would end at once. */
const timeoutMsMax = 2 ** 31 - 1

/** @throws TypeError if an option is none. The message contains no token */
export function checkOptions(options: ClientOptions): void {
  const { token, fetch, timeoutMs = Number.POSITIVE_INFINITY, attemptsMax = 1 } = options
  if (typeof token !== 'string' && typeof token !== 'function') {
    throw new TypeError('token must be a text or a function that returns one')
  }
  if (fetch !== undefined && typeof fetch !== 'function') {
    throw new TypeError('fetch must be a function')
  }
  const isTimeout = timeoutMs === Number.POSITIVE_INFINITY || timeoutMs <= timeoutMsMax
  if (typeof timeoutMs !== 'number' || !(timeoutMs > 0) || !isTimeout) {
    throw new TypeError(
      `timeoutMs must be a number above 0 and at most ${timeoutMsMax}, or Infinity`,
    )
  }
  if (!Number.isSafeInteger(attemptsMax) || attemptsMax < 1) {
    throw new TypeError('attemptsMax must be an integer of at least 1')
  }
}

/**
 * Returns the URL of an operation below the base URL, which may have a path.
 *
 * @throws TypeError if the base URL is none. The message does not contain it, because it
 *   may have a password
 */
export function operationUrl(
  { baseUrl }: Pick<ClientOptions, 'baseUrl'>,
  path: string,
): string {
  const text = `${baseUrl}`
  const href = URL.canParse(text) ? new URL(text).href : ''
  if (!/^https?:\/\/[^@/]+\/[^?#]*$/.test(href)) {
    throw new TypeError(
      'baseUrl must be an http or https URL without credentials, query and fragment, such as http://127.0.0.1:3000',
    )
  }
  return href.replace(/\/$/, '') + path
}
