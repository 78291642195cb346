export interface ClientOptions {
  /** The part before the paths of the description, such as `/plants`. */
  readonly baseUrl: string | URL
  /** The access token, or a function that returns the current one. */
  readonly token: string | (() => string | Promise<string>)
  readonly fetch?: typeof globalThis.fetch
  /**
   * The time of each attempt, from fetching the token to the last byte. By default
   * 10,000.
   */
  readonly timeoutMs?: number
  /** The number of attempts, the first one included. By default 4. */
  readonly attemptsMax?: number
}

/** A request of one operation, and how to read its answer. */
export interface OperationRequest<Result> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly url: string | URL
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /**
   * Allows a POST to be repeated. Each failed attempt may have made part of the change.
   */
  readonly mayRepeat?: boolean
  readonly signal: AbortSignal | undefined
  /** @throws if the body is not an answer of the operation */
  readonly read: (body: unknown, headers: Headers) => Result
}

/** An answer that arrived whole. */
export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}
