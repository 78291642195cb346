export const defaultServerLimits = {
  /** Also applies to each line of a batch, whose number of lines is unlimited. */
  bodyBytesMax: 1024 * 1024,
  headerBytesMax: 16 * 1024,
  /** UTF-8 bytes of the texts in one answer. A page ends there, with at least one entity. */
  pageTextBytesMax: 2 * 1024 * 1024,
  /** Half for long bodies, half for long answers, from admission until the answer has left. Beyond it, 503. */
  heldBytesMax: 48 * 1024 * 1024,
  /** From the first byte to the last. In a batch, for each line. */
  requestTimeoutMs: 30_000,
  /** For the header section. */
  headersTimeoutMs: 10_000,
  /** Between two requests of a connection. */
  keepAliveTimeoutMs: 72_000,
  /** For a client to send or to read the next byte. While it waits for the server, no time passes. */
  inactivityTimeoutMs: 60_000,
  /** For batches that are still arriving when the server stops. Then they are answered, complete or not. */
  batchRequestDrainMs: 4_000,
  /** Beyond it, 503. Beyond twice as many, connections are closed at once. */
  connectionsMax: 1_000,
}

export type ServerLimits = Readonly<typeof defaultServerLimits>

/** Faults in the answer to a batch. The others are only counted. */
export const faultsMax = 100

/** For a client to stop sending and to read its last answer. */
export const lingerTimeoutMs = 1_000
