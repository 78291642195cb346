export type PlantErrorCode = 'invalid-plant' | 'plant-not-found'

/**
 * Every way in which a rule can fail. A new code compiles only once every adapter that
 * reports it knows it.
 */
export type DomainErrorCode =
  | PlantErrorCode
  | 'invalid-id'
  | 'invalid-query'
  | 'id-taken'
  /** The version does not meet the caller's condition. Nothing was changed. */
  | 'condition-failed'
  /** Too many changes are pending. Nothing was changed: try again later. */
  | 'store-busy'
  /**
   * The store cannot be read or written. A change may have been made or not: try again
   * later.
   */
  | 'store-unavailable'

/**
 * A wrong field and its problem, which follows the field's name in a message:
 * `{ field: 'name', problem: 'is required' }`.
 */
export interface Fault {
  readonly field: string
  readonly problem: string
}

const brand = Symbol.for('@plant-store/domain DomainError')

export class DomainError extends Error {
  override readonly name = 'DomainError'
  readonly code: DomainErrorCode
  /** Every fault of a refused value, otherwise empty. */
  readonly faults: readonly Fault[]

  constructor(
    code: DomainErrorCode,
    message: string,
    options: { faults?: readonly Fault[]; cause?: unknown } = {},
  ) {
    super(message, options)
    this.code = code
    this.faults = options.faults ?? []
  }

  static {
    Object.defineProperty(DomainError.prototype, brand, { value: true })
  }
}

/**
 * Returns whether the error is a {@link DomainError} of any copy of this package in this
 * thread. `instanceof` knows only those of its own copy.
 *
 * An error that came from a worker thread is none: a structured clone keeps only the
 * message. The thread must send `code` and `message`.
 */
export function isDomainError(error: unknown): error is DomainError {
  return typeof error === 'object' && error !== null && brand in error
}

/** The problem of each field, or `undefined` if it has none. */
export type Problems<Field extends string = string> = Readonly<
  Record<Field, string | undefined>
>

/**
 * Returns the error for a value that its `parse…` refuses. Its message and its faults
 * name every problem.
 */
export function refusal(code: DomainErrorCode, problems: Problems): DomainError {
  const faults = Object.entries(problems).flatMap(([field, problem]) =>
    problem === undefined ? [] : [{ field, problem }],
  )
  const message = faults.map(({ field, problem }) => `${field} ${problem}`).join('; ')
  return new DomainError(code, message, { faults })
}

/** @param id of any entity */
export function idTaken(id: bigint): DomainError {
  return new DomainError('id-taken', `id ${id} is already taken`)
}
