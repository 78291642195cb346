const defaults = {
  /** Also a line of a batch, which may have any number of them. */
  bodyBytesMax: 1024 * 1024,
  headerBytesMax: 16 * 1024,
  /** The text of the plants in one answer, in UTF-8; a page of plants ends there, with one plant at least. */
  pageTextBytesMax: 2 * 1024 * 1024,
  /** Bodies and answers of some length, from their arrival until the answer has left; past it, 503. */
  heldBytesMax: 48 * 1024 * 1024,
  /** For a whole request to arrive, from its first byte; of a batch, for each line. */
  requestTimeoutMs: 30_000,
  /** For its header section to arrive. */
  headersTimeoutMs: 10_000,
  /** For the next request on a connection to begin. */
  keepAliveTimeoutMs: 72_000,
  /** For a byte to pass, either way, while a request is being sent or answered. */
  inactivityTimeoutMs: 60_000,
  /** Connections at one time; past it, 503, and past twice as many they are cut. */
  connectionsMax: 10_000,
  /** Wrong access tokens that an address may send in a minute. */
  wrongTokensMax: 100,
}

export type ServerLimits = Readonly<typeof defaults>
export const defaultServerLimits: ServerLimits = defaults

/** Faults in the answer to a batch; the others are only counted. */
export const faultsMax = 100
