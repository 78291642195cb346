/** Every way in which a rule of the plant store can fail. A new code compiles only once every adapter answers it. */
export type DomainErrorCode =
  | 'invalid-plant'
  | 'invalid-plant-id'
  | 'invalid-plant-query'
  | 'id-taken'
  | 'plant-not-found'
  /** The store has as many changes waiting as it may have; nothing was changed, try again later. */
  | 'store-busy'
  /** The store could not be read or written, or it can't be known whether the change was kept; try again later. */
  | 'store-unavailable'

/** One wrong field and what is wrong with it, in words that follow "it": `{ field: 'name', problem: 'is required' }`. */
export interface Fault {
  readonly field: string
  readonly problem: string
}

export class DomainError extends Error {
  override readonly name = 'DomainError'
  readonly code: DomainErrorCode
  /** Every fault of a refused value; empty for the codes that aren't about a value. */
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
}

/** The error of a value that has faults; its message names them all. */
export function refusal(code: DomainErrorCode, faults: readonly Fault[]): DomainError {
  return new DomainError(code, faults.map(({ field, problem }) => `${field} ${problem}`).join('; '), {
    faults,
  })
}
