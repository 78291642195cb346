import { isUtf8 } from 'node:buffer'
import { parseJsonRecord } from '@plant-store/json'
import type { FastifyRequest } from 'fastify'
import { RequestError } from './errors.ts'

/** What a request says, exactly or not at all: nothing is replaced, coerced or guessed on the way in. */

/** @throws RequestError `bad-json` */
export function readJson(body: Buffer | undefined): unknown {
  if (body === undefined || body.length === 0) throw new RequestError('bad-json', 'the request has no body')
  if (!isUtf8(body)) throw new RequestError('bad-json', 'the body is not valid UTF-8')
  try {
    return parseJsonRecord(body.toString())
  } catch (error) {
    throw new RequestError('bad-json', `the body is not valid JSON: ${(error as Error).message}`)
  }
}

/**
 * The query parameters that a request may have, percent-decoded; `+` is a space, as forms and URLSearchParams write it.
 * Others are ignored.
 *
 * @throws RequestError `bad-target`
 */
export function readQuery<Name extends string>(
  url: string,
  names: readonly Name[],
): { [name in Name]?: string } {
  const query: { [name in Name]?: string } = {}
  const start = url.indexOf('?')
  if (start === -1) return query
  for (const parameter of url.slice(start + 1).split('&')) {
    const equals = parameter.indexOf('=')
    const name = decode(equals === -1 ? parameter : parameter.slice(0, equals)) as Name
    if (!names.includes(name)) continue
    if (query[name] !== undefined)
      throw new RequestError('bad-target', `the query gives ${name} more than once`)
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

/** @throws RequestError when the body is encoded in a way that would have to be undone first */
export function checkEncoding({ headers }: FastifyRequest): void {
  const coding = headers['content-encoding']
  if (coding !== undefined && coding.toLowerCase() !== 'identity') {
    throw new RequestError('unsupported-coding', 'the body must be sent without Content-Encoding', {
      'accept-encoding': 'identity',
    })
  }
  // Node unwraps chunks, and nothing that they are said to be wrapped in.
  const transfer = headers['transfer-encoding']
  if (transfer !== undefined && transfer.toLowerCase() !== 'chunked') {
    throw new RequestError(
      'unsupported-coding',
      'the body must be sent without a transfer coding but chunked',
    )
  }
  const charset = /;\s*charset\s*=\s*"?([^\s";]*)/i.exec(headers['content-type'] ?? '')?.[1]
  if (charset !== undefined && charset.toLowerCase() !== 'utf-8') {
    throw new RequestError('unsupported-media-type', 'the body must be in UTF-8')
  }
}

const singleFields = ['host', 'authorization', 'content-type', 'content-encoding']

/**
 * @throws RequestError `bad-host` when it can't be known which of several values counts, or Host is missing
 *   (RFC 9112, 3.2); `bad-request` for a version of HTTP that Node reads and does not speak
 */
export function checkHeaders({
  rawHeaders,
  httpVersion,
}: {
  rawHeaders: readonly string[]
  httpVersion: string
}): void {
  if (httpVersion !== '1.1' && httpVersion !== '1.0')
    throw new RequestError('bad-request', 'the version of HTTP must be 1.1 or 1.0')
  let seen = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const field = singleFields.indexOf((rawHeaders[at] as string).toLowerCase())
    if (field === -1) continue
    const bit = 1 << field
    if (seen & bit)
      throw new RequestError('bad-host', `the header field ${singleFields[field]} is given more than once`)
    seen |= bit
  }
  if (!(seen & 1) && httpVersion !== '1.0')
    throw new RequestError('bad-host', 'the header field host is missing')
}
