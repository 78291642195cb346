/** The store refused the request. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError'
  readonly status: number
  /** The body's `error`: one of `errorNumbers`, or of a newer store. */
  readonly number: number
  /** Whether this attempt or an earlier one may have made the change all the same. */
  readonly mayHaveChanged: boolean
  /** The time to wait before the next request (`Retry-After`), if given. */
  readonly retryAfterMs: number | undefined

  constructor(
    refusal: Pick<RefusedError, 'status' | 'number' | 'retryAfterMs' | 'message'>,
    mayHaveChanged: boolean,
  ) {
    super(refusal.message)
    this.status = refusal.status
    this.number = refusal.number
    this.retryAfterMs = refusal.retryAfterMs
    this.mayHaveChanged = mayHaveChanged
  }
}

export type NoAnswerReason =
  /** No complete answer arrived within `timeoutMs`. */
  | 'timed-out'
  /** The connection failed, or broke before the answer was complete. */
  | 'connection-failed'
  /** Something other than a plant store answered, such as a proxy, or an incompatible version. */
  | 'unreadable-answer'

/** No answer says whether the request succeeded. */
export class NoAnswerError extends Error {
  override readonly name = 'NoAnswerError'
  readonly reason: NoAnswerReason
  /** Whether the change may have been made. False if it certainly was not. */
  readonly mayHaveChanged: boolean
  /** The status of the unreadable answer. */
  readonly status: number | undefined
  readonly retryAfterMs: number | undefined

  constructor(
    reason: NoAnswerReason,
    message: string,
    mayHaveChanged: boolean,
    details: { status?: number; retryAfterMs?: number | undefined; cause?: unknown } = {},
  ) {
    super(
      mayHaveChanged ? `${message}; it is unknown whether the change was made` : message,
      'cause' in details ? { cause: details.cause } : undefined,
    )
    this.reason = reason
    this.mayHaveChanged = mayHaveChanged
    this.status = details.status
    this.retryAfterMs = details.retryAfterMs
  }
}
