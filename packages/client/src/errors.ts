/** The store answered that it won't: what its Error body and the status around it say. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError'
  readonly status: number
  /** The `error` of the body: one of `errorNumbers`, or of a newer store. */
  readonly number: number
  /** Whether the change that was asked for may have been made all the same, by this attempt or by one before it. */
  readonly mayHaveChanged: boolean
  /** How long the store wants to be left alone (`Retry-After`), where it says so. */
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
  /** No whole answer arrived within `timeoutMs`. */
  | 'timed-out'
  /** There was no connection, or it broke before the whole answer was there. */
  | 'connection-failed'
  /** What answered is not a plant store, or not this version of one: a proxy, say. */
  | 'unreadable-answer'

/** Nothing came back that says what became of the request. */
export class NoAnswerError extends Error {
  override readonly name = 'NoAnswerError'
  readonly reason: NoAnswerReason
  /** Whether the change that was asked for may have been made. False when it is known that it was not. */
  readonly mayHaveChanged: boolean
  /** Of the answer that could not be read. */
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
