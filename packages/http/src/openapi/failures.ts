import { commonFailures, type FailureRow } from '../errors/error-numbers.ts'
import { type Described, header, type Section } from './operation.ts'
import { about, FailureBody } from './schemas.ts'

const wwwAuthenticate = header(
  'WWW-Authenticate',
  'What is wrong with the credentials (RFC 6750, 3)',
)
const retryAfter = header('Retry-After', 'Seconds to wait before trying again')
/** The header fields of every failure with this status. */
const headersOf: Readonly<Record<string, Described['headers']>> = {
  401: wwwAuthenticate,
  403: wwwAuthenticate,
  503: retryAfter,
}

/** Returns the response of each status of a failure, with every number that it may have. */
export function describeFailures(
  sections: readonly Section[],
): Readonly<Record<string, Described>> {
  const tables = [commonFailures, ...sections.map(({ failures = {} }) => failures)]
  const rows: FailureRow[] = tables.flatMap(table => Object.values(table))
  rows.sort(([a], [b]) => a - b)
  const byStatus = Map.groupBy(rows, ([number]) => `${Math.floor(number / 100)}`)
  return Object.fromEntries(
    [...byStatus].map(([status, rows]) => [status, describe(status, rows)]),
  )
}

function describe(status: string, rows: readonly FailureRow[]): Described {
  const meanings = rows.map(([number, meaning]) => `- ${number}: ${meaning}`).join('\n')
  const examples = rows.map(([error, message]) => [
    error,
    { summary: `${error}`, value: { error, message } },
  ])
  const headers = headersOf[status]
  return {
    ...about(meanings, { ...FailureBody, examples: Object.fromEntries(examples) }),
    ...(headers && { headers }),
  }
}
