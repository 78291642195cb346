import { afterAll, expect, test } from 'vitest'
import { startService } from './memory-service.ts'

const service = await startService()
const { client } = service
afterAll(() => service[Symbol.asyncDispose]())

const { full } = service.tokens
/** What can be wrong with a request, in the order in which it is told: the wrong form, the right one, the answer. */
const faults: readonly (readonly [wrong: Partial<Request>, right: Partial<Request>, told: RegExp])[] = [
  [{ version: '2.0' }, { version: '1.1' }, /^40000 .*version/],
  [{ host: 'host: a b' }, { host: 'host: h' }, /^40007 .*host/],
  [{ expect: 'expect: a miracle' }, { expect: 'x-expect: nothing' }, /^41701 .*miracle/],
  [{ token: 'wrong' }, { token: full }, /^40102 .*unknown/],
  [{ path: '/plants' }, { path: '/plants/1' }, /^40501 .*methods/],
  [{ range: 'content-range: bytes 0-1/2' }, { range: 'x-range: none' }, /^40010 .*Content-Range/],
  [
    { coding: 'content-encoding: gzip' },
    { coding: 'content-encoding: identity' },
    /^41502 .*Content-Encoding/,
  ],
  [{ chunks: 'gzip, chunked' }, { chunks: 'chunked' }, /^41502 .*chunked/],
  [{ type: 'text/plain' }, { type: 'application/json' }, /^41501 .*media type/],
  [{ body: '{' }, { body: '{"id":1,"name":"n"}' }, /^40001 .*JSON/],
]

interface Request {
  version: string
  host: string
  expect: string
  token: string
  path: string
  range: string
  coding: string
  chunks: string
  type: string
  body: string
}

function bytes(request: Request): string {
  const { version, host, expect, token, path, range, coding, chunks, type, body } = request
  const fields = [host, expect, `authorization: Bearer ${token}`, range, coding, `content-type: ${type}`]
  const head = [`PUT ${client.target(path)} HTTP/${version}`, ...fields, `transfer-encoding: ${chunks}`]
  return `${head.join('\r\n')}\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
}

test('of all that is wrong with a request the first is told, in one order', async () => {
  for (let righted = 0; righted < faults.length; righted++) {
    const parts = faults.map(([wrong, right], index) => (index < righted ? right : wrong))
    const request = Object.assign({}, ...parts) as Request
    const answer = await client.exchange(client.asked(`PUT ${request.path}`), bytes(request))
    const { error, message } = JSON.parse(`${answer.body}`)
    expect(`${error} ${message}`).toMatch(faults[righted]?.[2] as RegExp)
  }
})

test.each([
  [
    ['content-type: application/json', 'content-type: text/plain'],
    /^the header field content-type occurs more than once$/,
  ],
  [['expect: 100-continues'], /^the expectation 100-continues cannot be met$/],
  [['expect: not-100-continue'], /^the expectation not-100-continue cannot be met$/],
  [['content-type: application/json; charset=latin1'], /^the body must be in UTF-8$/],
  [[], /^the media type of the body must be application\/json$/],
])('with %j a client is told why', async (fields, message) => {
  const answer = await client.askBare(
    'POST /plants',
    [...fields, 'content-length: 19'],
    '{"id":1,"name":"n"}',
  )
  expect(JSON.parse(`${answer.body}`).message).toMatch(message)
  // The body of a request that was not asked for may never come.
  if (`${message}`.includes('expectation')) expect(answer.headers.get('connection')).toBe('close')
})

test.each([
  [Buffer.alloc(0), /^the request has no body$/],
  [Buffer.from([0x22, 0xff, 0x22]), /^the body is not valid UTF-8$/],
  [Buffer.from('{"id":'), /^the body is not valid JSON: ./],
])('what is no JSON is told as what it is: %#', async (body, message) => {
  const answer = await client.postBare(body)
  expect(JSON.parse(`${answer.body}`)).toEqual({ error: 40001, message: expect.stringMatching(message) })
})

test('a body of all that is allowed is asked for, and one byte more is not', async () => {
  const bodyOf = (bytes: number) => `${' '.repeat(bytes - 18)}{"id":7,"name":""}`
  for (const [bytes, status, interim] of [
    [service.bodyBytesMax, 200, [100]],
    [service.bodyBytesMax + 1, 413, []],
  ] as const) {
    const answer = await client.postBare(bodyOf(bytes), ['expect: 100-continue'])
    expect([answer.status, answer.interim]).toEqual([status, interim])
  }
})

test('a host is a name or an address, with an optional port', async () => {
  const ask = (host: string) =>
    client.exchange(client.asked('GET /healthz'), `GET /healthz HTTP/1.1\r\nhost: ${host}\r\n\r\n`)
  for (const host of ['', 'A', 'a:1', "a.b-c_d~!$&'()*+;=:", '%41', '[::1]', '[::1]:80'])
    expect((await ask(host)).status, host).toBe(200)
  const error = { error: 40007, message: 'the header field host must be a host with an optional port' }
  const wrong = ['a,b', 'a b', 'a/b', 'a@b', '%4', '%4g', 'a:b', 'a:1:2']
  for (const host of [...wrong, '[::1', '[::1]x', '[fe80::1%eth0]', '[1.2.3.4]', '[]'])
    expect(JSON.parse(`${(await ask(host)).body}`), host).toEqual(error)
})
