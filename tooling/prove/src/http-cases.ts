import { type Client, toJson } from '@plant-store/contract'
import type { SuiteFinding } from './json-suite.ts'

/** The bytes of a connection, and what may become of them. */
interface HttpCase {
  readonly name: string
  readonly bytes: string
  /** The statuses of the first answer that are right. */
  readonly statuses: readonly number[]
  /** Whether the connection must end, because what follows can't be told apart. */
  readonly closes?: boolean
}

/** What must not be done: it follows what a server could take for the end of another request. */
const hidden = (client: Client, id: bigint) => {
  const body = toJson({ id, name: 'smuggled' })
  return `POST ${client.target('/plants')} HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${client.store.tokens.full}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
}

/**
 * Requests as conformance suites of HTTP/1.1 try them (RFC 9110, 9112): where a request ends must never be a matter of
 * opinion, since a proxy in front could have another one. None of them may create the plant that is hidden in it.
 */
export async function runHttpCases(client: Client, firstId: bigint): Promise<SuiteFinding> {
  const failures: string[] = []
  let id = firstId
  let requests = 0
  for (const make of cases) {
    id += 1n
    const { name, bytes, statuses, closes = false } = make(client, id)
    using wire = await client.open()
    wire.send(Buffer.from(bytes, 'latin1'))
    requests++
    try {
      const { status } = await wire.answer(undefined)
      if (!statuses.includes(status))
        failures.push(`${name}: answered with ${status}, not ${statuses.join(' or ')}`)
      if (closes) await wire.closed()
    } catch (error) {
      failures.push(`${name}: ${(error as Error).message}`)
    }
    const { status } = await client.ask('GET', `/plants/${id}`)
    if (status !== 404) failures.push(`${name}: what was hidden in it was done (${status})`)
  }
  return { cases: cases.length, requests, failures }
}

type MakeCase = (client: Client, id: bigint) => HttpCase

/** A POST that creates nothing by itself, with these fields, body and what follows. */
const post =
  (name: string, fields: string, rest: (tail: string) => string, statuses = [400], closes = true): MakeCase =>
  (client, id) => ({
    name,
    bytes: `POST ${client.target('/plants')} HTTP/1.1\r\nhost: h\r\nauthorization: Bearer ${client.store.tokens.full}\r\ncontent-type: application/json\r\n${fields}\r\n\r\n${rest(hidden(client, id))}`,
    statuses,
    closes,
  })

/** A request for an open page whose first lines are given. */
const head =
  (name: string, lines: string, statuses = [400], closes = true): MakeCase =>
  (client, id) => ({ name, bytes: `${lines}${hidden(client, id)}`, statuses, closes })

const chunked = 'transfer-encoding: chunked'

const cases: readonly MakeCase[] = [
  // Two lengths (RFC 9112, 6.1 and 6.3).
  post(
    'Content-Length before Transfer-Encoding',
    `content-length: 4\r\n${chunked}`,
    tail => `0\r\n\r\n${tail}`,
  ),
  post(
    'Transfer-Encoding before Content-Length',
    `${chunked}\r\ncontent-length: 5`,
    tail => `0\r\n\r\n${tail}`,
  ),
  post('a Content-Length of 0 and chunks', `content-length: 0\r\n${chunked}`, tail => `0\r\n\r\n${tail}`),
  post('two different Content-Length', 'content-length: 2\r\ncontent-length: 300', tail => `{}${tail}`),
  post('two equal Content-Length', 'content-length: 2\r\ncontent-length: 2', () => '{}'),
  post('a list of Content-Length', 'content-length: 2, 2', () => '{}'),
  post('a negative Content-Length', 'content-length: -1', tail => tail),
  post('a Content-Length with a plus', 'content-length: +2', tail => `{}${tail}`),
  post('a hexadecimal Content-Length', 'content-length: 0x2', tail => `{}${tail}`),
  post('a Content-Length with a fraction', 'content-length: 2.0', tail => `{}${tail}`),
  post('a Content-Length with a space in it', 'content-length: 2 0', tail => `{}${tail}`),
  post('an empty Content-Length', 'content-length: ', tail => `{}${tail}`),
  post('a Content-Length above 64 bits', 'content-length: 18446744073709551618', tail => `{}${tail}`),
  post(
    'Transfer-Encoding that does not end in chunked',
    'transfer-encoding: chunked, identity',
    tail => `0\r\n\r\n${tail}`,
    [400, 415],
  ),
  post(
    'Transfer-Encoding twice',
    `${chunked}\r\ntransfer-encoding: identity`,
    tail => `0\r\n\r\n${tail}`,
    [400, 415],
  ),
  post('Transfer-Encoding of nobody', 'transfer-encoding: xchunked', tail => `0\r\n\r\n${tail}`, [400, 415]),
  post('Transfer-Encoding in quotes', 'transfer-encoding: "chunked"', tail => `0\r\n\r\n${tail}`, [400, 415]),
  post('Transfer-Encoding with a vertical tab', 'transfer-encoding: \x0bchunked', tail => `0\r\n\r\n${tail}`),
  // Field lines (RFC 9112, 5).
  post('a space before the colon', 'content-length : 2', tail => `{}${tail}`),
  post('a tab before the colon', 'transfer-encoding\t: chunked', tail => `0\r\n\r\n${tail}`),
  post('a line that is folded', 'x-note: a\r\n b\r\ncontent-length: 2', tail => `{}${tail}`),
  post('a length that is folded', 'content-length:\r\n 2', tail => `{}${tail}`),
  post('a line without a colon', 'content-length', tail => `{}${tail}`),
  post('a line without a name', ': 2', tail => tail),
  post('a line that begins with a space', ' content-length: 2', tail => `{}${tail}`),
  post('a zero byte in a name', 'content\0-length: 2', tail => `{}${tail}`),
  post('a zero byte in a value', 'x-note: a\0b\r\ncontent-length: 2', tail => `{}${tail}`),
  post('a carriage return in a value', 'x-note: a\rb\r\ncontent-length: 2', tail => `{}${tail}`),
  post('a letter outside ASCII in a name', 'content-l\xe9ngth: 2', tail => `{}${tail}`),
  post('lines that end in LF only', 'x-note: a\ncontent-length: 2', tail => `{}${tail}`),
  post('a parenthesis in a name', 'x(note): a', tail => tail),
  // Chunks (RFC 9112, 7.1).
  post('a chunk size above 64 bits', chunked, tail => `fffffffffffffffff\r\n${tail}`),
  post('a chunk size that wraps to 0', chunked, tail => `10000000000000000\r\n${tail}`),
  post('a negative chunk size', chunked, tail => `-1\r\n${tail}`),
  post('a chunk size with 0x', chunked, tail => `0x2\r\n{}\r\n0\r\n\r\n${tail}`),
  post('a chunk size that is no number', chunked, tail => `zz\r\n{}\r\n0\r\n\r\n${tail}`),
  post('a chunk size with a plus', chunked, tail => `+2\r\n{}\r\n0\r\n\r\n${tail}`),
  post('a space before a chunk size', chunked, tail => ` 2\r\n{}\r\n0\r\n\r\n${tail}`),
  post('a space after a chunk size', chunked, tail => `2 \r\n{}\r\n0\r\n\r\n${tail}`),
  post('an empty chunk size', chunked, tail => `\r\n{}\r\n0\r\n\r\n${tail}`),
  post('a chunk longer than its size', chunked, tail => `2\r\n{}{}\r\n0\r\n\r\n${tail}`),
  post('a chunk size that ends in LF only', chunked, tail => `2\n{}\r\n0\r\n\r\n${tail}`),
  post('a chunk that ends in LF only', chunked, tail => `2\r\n{}\n0\r\n\r\n${tail}`),
  post('a chunk that ends in CR only', chunked, tail => `2\r\n{}\r0\r\n\r\n${tail}`),
  post('a chunk extension with a line break of another kind', chunked, tail => `2;a\n{}\r\n0\r\n\r\n${tail}`),
  post('a zero byte in a chunk extension', chunked, tail => `2;a=\0\r\n{}\r\n0\r\n\r\n${tail}`),
  post('a trailer that is no field', chunked, tail => `2\r\n{}\r\n0\r\nno field\r\n\r\n${tail}`),
  // Request lines (RFC 9112, 3). Several spaces for one are read as one, as it allows.
  head('no version', 'GET /healthz\r\n\r\n'),
  head('HTTP/0.9', 'GET /healthz HTTP/0.9\r\nhost: h\r\n\r\n'),
  head('HTTP/2 in a line', 'GET /healthz HTTP/2.0\r\nhost: h\r\n\r\n'),
  head('HTTP/1.2', 'GET /healthz HTTP/1.2\r\nhost: h\r\n\r\n'),
  head('the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  head('a version of two digits', 'GET /healthz HTTP/1.10\r\nhost: h\r\n\r\n'),
  head('another protocol', 'GET /healthz HTTPS/1.1\r\nhost: h\r\n\r\n'),
  head('a version in lower case', 'GET /healthz http/1.1\r\nhost: h\r\n\r\n'),
  head('no target', 'GET  HTTP/1.1\r\nhost: h\r\n\r\n'),
  head('a tab for a space', 'GET\t/healthz HTTP/1.1\r\nhost: h\r\n\r\n'),
  head('a space in the target', 'GET /heal thz HTTP/1.1\r\nhost: h\r\n\r\n'),
  head('a space before the method', ' GET /healthz HTTP/1.1\r\nhost: h\r\n\r\n'),
  head('a method in lower case', 'get /healthz HTTP/1.1\r\nhost: h\r\n\r\n'),
  head('a method with a sign', 'GE\\T /healthz HTTP/1.1\r\nhost: h\r\n\r\n'),
  head('a zero byte in the target', 'GET /healthz\0 HTTP/1.1\r\nhost: h\r\n\r\n'),
  head('a request line that ends in CR only', 'GET /healthz HTTP/1.1\rhost: h\r\n\r\n'),
  head('a TLS greeting', '\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03'),
  head('an empty line and no request line', '\r\n: x\r\n\r\n'),
]
