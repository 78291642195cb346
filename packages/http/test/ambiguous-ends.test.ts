import { bareRequest, hostAndToken, toJson } from '@plant-store/http/testing'
import { afterAll, expect, test } from 'vitest'
import { startService } from './memory-service.ts'

/**
 * One request of each kind from conformance suites of HTTP/1.1 (RFC 9110, 9112). The
 * tests of Node's parser have more. A server and a proxy in
 * front of it must agree where a request ends. So each is refused and its connection
 * closed, and a create that follows on the connection must not be done.
 */

const service = await startService()
const { client } = service
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  expect(service.logged).toEqual([])
})

/** A POST with these header fields and this body. */
function post(fields: string, body: string): string {
  const head = [...hostAndToken(client), 'content-type: application/json', fields]
  return bareRequest(client.asked('POST /plants'), head) + body
}

const chunked = 'transfer-encoding: chunked'

/** The bytes of requests that no two parsers may understand differently. */
const requests = {
  // Two lengths (RFC 9112, 6.1 and 6.3).
  'Content-Length before Transfer-Encoding': post(
    `content-length: 4\r\n${chunked}`,
    '0\r\n\r\n',
  ),
  'Transfer-Encoding before Content-Length': post(
    `${chunked}\r\ncontent-length: 5`,
    '0\r\n\r\n',
  ),
  'a Content-Length of 0 and chunks': post(
    `content-length: 0\r\n${chunked}`,
    '0\r\n\r\n',
  ),
  'two different Content-Length': post('content-length: 2\r\ncontent-length: 300', '{}'),
  'a list of Content-Length': post('content-length: 2, 2', '{}'),
  'a hexadecimal Content-Length': post('content-length: 0x2', '{}'),
  'a Content-Length above 64 bits': post('content-length: 18446744073709551618', '{}'),
  'Transfer-Encoding that does not end in chunked': post(
    'transfer-encoding: chunked, identity',
    '0\r\n\r\n',
  ),
  'Transfer-Encoding twice': post(
    `${chunked}\r\ntransfer-encoding: identity`,
    '0\r\n\r\n',
  ),
  'Transfer-Encoding of nobody': post('transfer-encoding: xchunked', '0\r\n\r\n'),
  'Transfer-Encoding with a vertical tab': post(
    'transfer-encoding: \x0bchunked',
    '0\r\n\r\n',
  ),
  // Field lines (RFC 9112, 5).
  'a space before the colon': post('content-length : 2', '{}'),
  'a line that is folded': post('x-note: a\r\n b\r\ncontent-length: 2', '{}'),
  'a line without a colon': post('content-length', '{}'),
  'a zero byte in a value': post('x-note: a\0b\r\ncontent-length: 2', '{}'),
  'a carriage return in a value': post('x-note: a\rb\r\ncontent-length: 2', '{}'),
  'lines that end in LF only': post('x-note: a\ncontent-length: 2', '{}'),
  // Chunks (RFC 9112, 7.1).
  'a chunk size above 64 bits': post(chunked, 'fffffffffffffffff\r\n'),
  'a chunk size with 0x': post(chunked, '0x2\r\n{}\r\n0\r\n\r\n'),
  'a chunk size that is no number': post(chunked, 'zz\r\n{}\r\n0\r\n\r\n'),
  'a space after a chunk size': post(chunked, '2 \r\n{}\r\n0\r\n\r\n'),
  'a chunk longer than its size': post(chunked, '2\r\n{}{}\r\n0\r\n\r\n'),
  'a chunk size that ends in LF only': post(chunked, '2\n{}\r\n0\r\n\r\n'),
  'a chunk that ends in LF only': post(chunked, '2\r\n{}\n0\r\n\r\n'),
  'a chunk extension with a line break of another kind': post(
    chunked,
    '2;a\n{}\r\n0\r\n\r\n',
  ),
  'a trailer that is no field': post(chunked, '2\r\n{}\r\n0\r\nno field\r\n\r\n'),
  // Request lines (RFC 9112, 3). Several spaces for one are read as one, as it allows.
  'no version': 'GET /healthz\r\n\r\n',
  'HTTP/1.2': 'GET /healthz HTTP/1.2\r\nhost: h\r\n\r\n',
  'the preface of HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'no target': 'GET  HTTP/1.1\r\nhost: h\r\n\r\n',
  'a space in the target': 'GET /heal thz HTTP/1.1\r\nhost: h\r\n\r\n',
  'a zero byte in the target': 'GET /healthz\0 HTTP/1.1\r\nhost: h\r\n\r\n',
  'a request line that ends in CR only': 'GET /healthz HTTP/1.1\rhost: h\r\n\r\n',
  'a TLS greeting': '\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03',
}

test('an ambiguous request closes its connection, and nothing follows it', async () => {
  // All at once, as a refused connection waits a second for its client.
  const sending = Object.entries(requests).map(async ([name, bytes], id) => {
    const hidden = toJson({ id: BigInt(id), name: 'smuggled' })
    using wire = await client.open()
    wire.send(
      Buffer.from(bytes + post(`content-length: ${hidden.length}`, hidden), 'latin1'),
    )
    const { status } = await wire.answer(undefined)
    expect(status, name).toBe(400)
    await wire.closed()
    expect((await client.ask('GET', `/plants/${id}`)).status, name).toBe(404)
  })
  await Promise.all(sending)
})
