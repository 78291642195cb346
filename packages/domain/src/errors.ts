/** Every way in which a rule of the plant store can fail. A new code compiles only once every adapter answers it. */
export type DomainErrorCode =
  | 'invalid-plant'
  | 'invalid-plant-id'
  | 'invalid-plant-query'
  | 'id-taken'
  | 'plant-not-found'
  /** The plant is not in a state that the caller's condition allows; nothing was changed. */
  | 'condition-failed'
  /** Too many changes are waiting in the store; nothing was changed, try again later. */
  | 'store-busy'
  /** The store could not be read or written, or the change may or may not have been kept; try again later. */
  | 'store-unavailable'

/** One wrong field and what is wrong with it, in words that follow "it": `{ field: 'name', problem: 'is required' }`. */
export interface Fault {
  readonly field: string
  readonly problem: string
}

const brand = Symbol.for('@plant-store/domain DomainError')

export class DomainError extends Error {
  override readonly name = 'DomainError'
  readonly code: DomainErrorCode
  /** Every fault of a refused value; otherwise empty. */
  readonly faults: readonly Fault[]

  constructor(
    code: DomainErrorCode,
    message: string,
    options: { faults?: readonly Fault[]; cause?: unknown } = {},
  ) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.code = code
    this.faults = options.faults ?? []
  }

  static {
    Object.defineProperty(DomainError.prototype, brand, { value: true })
  }
}

/** Returns whether this is a {@link DomainError} of any copy of this package: `instanceof` knows only its own copy's. */
export function isDomainError(error: unknown): error is DomainError {
  return (error as { [brand]?: unknown } | null | undefined)?.[brand] === true
}

/** The error of a value that has faults; its message names them all. */
export function refusal(code: DomainErrorCode, faults: readonly Fault[]): DomainError {
  return new DomainError(code, faults.map(({ field, problem }) => `${field} ${problem}`).join('; '), {
    faults,
  })
}
