export interface ServerLimits {
  /**
   * The largest body. It also applies to each line of a batch, which may have any number
   * of lines.
   */
  readonly bodyBytesMax: number
  readonly headerBytesMax: number
  /**
   * The UTF-8 bytes of the texts on one page. A page ends there, but has at least one
   * plant.
   */
  readonly pageTextBytesMax: number
  /**
   * The memory that requests hold from their admission until their answer has left: one
   * half for long bodies, the other for long answers. Above it, the answer is 503.
   */
  readonly heldBytesMax: number
  /** How long a request may take to arrive. In a batch, each line has this time. */
  readonly requestTimeoutMs: number
  /** How long the header section may take to arrive. */
  readonly headersTimeoutMs: number
  /** How long a connection may be idle between two requests. */
  readonly keepAliveTimeoutMs: number
  /**
   * How long a client may take to send or to read the next byte. The clock stops while
   * the server has something to do.
   */
  readonly inactivityTimeoutMs: number
  /**
   * How long batches may still arrive once the server stops. Then they are answered,
   * whether they are complete or not.
   */
  readonly batchRequestDrainMs: number
  /**
   * Above it, the answer is 503. Above twice this number, connections are closed at
   * once.
   */
  readonly connectionsMax: number
}

/** The largest number of header fields. Node's own limit is the same. */
export const headerFieldsMax = 1_000

/** How many faults the answer to a batch lists. It only counts the others. */
export const faultsMax = 100

/** How long a client may take to stop sending and to read its last answer. */
export const lingerTimeoutMs = 1_000
