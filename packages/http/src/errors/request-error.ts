import type { RequestErrorCode } from './error-numbers.ts'

/** A fault of a request itself. Its code has a published number. */
export class RequestError extends Error {
  override readonly name = 'RequestError'
  readonly code: RequestErrorCode
  readonly headers: Readonly<Record<string, string>>

  constructor(
    code: RequestErrorCode,
    message: string,
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(message)
    this.code = code
    this.headers = headers
  }
}
