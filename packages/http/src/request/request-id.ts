import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

/** The header field that names a request: taken from whoever sends one, and on every answer. */
export const requestIdField = 'x-request-id'

const prefix = randomBytes(8).toString('base64url')
let count = 0

/**
 * Names a request by what its sender calls it, where that can stand in a log and a header as it is, and otherwise by a
 * name that no other request has, in any thread or process.
 */
export function requestId(request?: IncomingMessage): string {
  const given = request?.headers[requestIdField] as string | undefined
  if (given !== undefined && /^[\w.:/+=@-]{1,128}$/.test(given)) return given
  count += 1
  return `${prefix}-${count.toString(36)}`
}
