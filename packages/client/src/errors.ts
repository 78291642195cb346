/** The store refused the request. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError'
  declare readonly status: number
  /** The body's `error`: one of `errorNumbers`, or of a newer store. */
  declare readonly number: number
  /** Whether this attempt or an earlier one may have made the change all the same. */
  declare readonly mayHaveChanged: boolean
  /** The time to wait before the next request (`Retry-After`), if given. */
  declare readonly retryAfterMs: number | undefined

  constructor(message: string, details: Omit<RefusedError, keyof Error>) {
    super(message)
    Object.assign(this, details)
  }
}

/** No answer says whether the request succeeded. */
export class NoAnswerError extends Error {
  override readonly name = 'NoAnswerError'
  /**
   * `timed-out`: no complete answer arrived within `timeoutMs`. `connection-failed`: the
   * connection failed, or broke before the answer was complete. `unreadable-answer`:
   * something other than a plant store answered, such as a proxy.
   */
  declare readonly reason: 'timed-out' | 'connection-failed' | 'unreadable-answer'
  /** Whether the change may have been made. False if it certainly was not. */
  declare readonly mayHaveChanged: boolean
  /** The status of the unreadable answer. */
  declare readonly status?: number
  declare readonly retryAfterMs?: number | undefined

  constructor(
    message: string,
    details: Omit<NoAnswerError, keyof Error>,
    cause: unknown,
  ) {
    const doubt = details.mayHaveChanged
      ? '; it is unknown whether the change was made'
      : ''
    super(`${message}${doubt}`, { cause })
    Object.assign(this, details)
  }
}

/**
 * The numbers of the store's errors that a caller can act on. A number never changes its
 * meaning.
 */
export const errorNumbers = {
  'invalid-plant': 40002,
  'id-taken': 40003,
  'invalid-token': 40102,
  'insufficient-scope': 40301,
  'no-such-path': 40401,
  'plant-not-found': 40402,
  'condition-failed': 41201,
  'body-too-large': 41301,
  'store-busy': 50301,
  'store-unavailable': 50302,
  draining: 50303,
  'too-many-connections': 50304,
  'too-many-bytes': 50305,
  'access-unavailable': 50306,
} as const
