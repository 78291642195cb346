import { RequestError } from '../answer/failures.ts'

/**
 * The query parameters that a request may have, percent-decoded; `+` is a space, as forms and URLSearchParams write it.
 * Others are ignored.
 *
 * @throws RequestError `bad-target`, `repeated-parameter`
 */
export function readQuery<Name extends string>(
  url: string,
  names: readonly Name[],
): { [name in Name]?: string } {
  const query: { [name in Name]?: string } = {}
  const start = url.indexOf('?')
  if (start === -1) return query
  for (const parameter of url.slice(start + 1).split('&')) {
    if (parameter === '') continue
    const equals = parameter.indexOf('=')
    const name = decode(equals === -1 ? parameter : parameter.slice(0, equals)) as Name
    if (!names.includes(name)) continue
    if (query[name] !== undefined)
      throw new RequestError('repeated-parameter', `the query gives ${name} more than once`)
    query[name] = equals === -1 ? '' : decode(parameter.slice(equals + 1))
  }
  return query
}

function decode(text: string): string {
  // Node hands bytes outside ASCII over as Latin-1, whatever the client meant by them.
  if (/[^\x21-\x7e]/.test(text))
    throw new RequestError('bad-target', 'the query has characters that must be percent-encoded')
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    throw new RequestError('bad-target', 'the query is not correctly percent-encoded UTF-8')
  }
}

/** An integer where it is written as one, without leading zeros; other text is left for the domain to refuse. */
export function readInteger(text: string | undefined): bigint | string | undefined {
  return text !== undefined && /^(0|-?[1-9]\d{0,18})$/.test(text) ? BigInt(text) : text
}
