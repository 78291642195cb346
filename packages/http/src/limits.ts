export const defaultServerLimits = {
  /**
   * The largest body. It also applies to each line of a batch, which may have any number
   * of lines.
   */
  bodyBytesMax: 1024 * 1024,
  headerBytesMax: 16 * 1024,
  /**
   * The UTF-8 bytes of the texts on one page. A page ends there, but has at least one
   * plant.
   */
  pageTextBytesMax: 2 * 1024 * 1024,
  /**
   * The memory that requests hold from their admission until their answer has left: one
   * half for long bodies, the other for long answers. Above it, the answer is 503.
   */
  heldBytesMax: 48 * 1024 * 1024,
  /** How long a request may take to arrive. In a batch, each line has this time. */
  requestTimeoutMs: 30_000,
  /** How long the header section may take to arrive. */
  headersTimeoutMs: 10_000,
  /** How long a connection may be idle between two requests. */
  keepAliveTimeoutMs: 72_000,
  /**
   * How long a client may take to send or to read the next byte. The clock stops while
   * the server has something to do.
   */
  inactivityTimeoutMs: 60_000,
  /**
   * How long batches may still arrive once the server stops. Then they are answered,
   * whether they are complete or not.
   */
  batchRequestDrainMs: 4_000,
  /**
   * Above it, the answer is 503. Above twice this number, connections are closed at
   * once.
   */
  connectionsMax: 1_000,
}

export type ServerLimits = Readonly<typeof defaultServerLimits>

/** The largest number of header fields. Node's own limit is the same. */
export const headerFieldsMax = 1_000

/** How many faults the answer to a batch lists. It only counts the others. */
export const faultsMax = 100

/** How long a client may take to stop sending and to read its last answer. */
export const lingerTimeoutMs = 1_000
