export interface ServerLimits {
  readonly bodyBytesMax: number
  readonly headerBytesMax: number
  /** The text of the plants in one answer, in UTF-8; a page of plants ends there, with one plant at least. */
  readonly pageTextBytesMax: number
  /** Bodies and answers of some length, from their arrival until the answer has left; who comes past it is told so (503). */
  readonly heldBytesMax: number
  /** For a whole request to arrive, from its first byte. */
  readonly requestTimeoutMs: number
  /** For its header section to arrive. */
  readonly headersTimeoutMs: number
  /** For the next request on a connection to begin. */
  readonly keepAliveTimeoutMs: number
  /** For a byte to pass, either way, while a request is being sent or answered. */
  readonly inactivityTimeoutMs: number
  /** Connections at one time; who comes past it is told so (503), and past twice as many cut off. */
  readonly connectionsMax: number
  /** Wrong access tokens that an address may send in a minute. */
  readonly wrongTokensMax: number
}

export const defaultServerLimits: ServerLimits = {
  bodyBytesMax: 1024 * 1024,
  headerBytesMax: 16 * 1024,
  pageTextBytesMax: 2 * 1024 * 1024,
  heldBytesMax: 64 * 1024 * 1024,
  requestTimeoutMs: 30_000,
  headersTimeoutMs: 10_000,
  keepAliveTimeoutMs: 72_000,
  inactivityTimeoutMs: 60_000,
  connectionsMax: 10_000,
  wrongTokensMax: 100,
}
