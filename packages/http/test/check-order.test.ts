import { chunk } from '@plant-store/contract'
import { afterAll, expect, test } from 'vitest'
import { startService } from './memory-service.ts'

const service = await startService()
const { client } = service
afterAll(() => service[Symbol.asyncDispose]())

/** What can be wrong with a request, in the order in which it is told: the wrong form, the right one, the answer. */
const faults: readonly (readonly [wrong: string, right: string, told: RegExp])[] = [
  ['2.0', '1.1', /^40000 .*version/],
  ['host: a b', 'host: h', /^40007 .*host/],
  ['expect: a miracle', 'x-expect: nothing', /^41701 .*miracle/],
  ['wrong', service.tokens.full, /^40102 .*unknown/],
  ['/plants', '/plants/1', /^40501 .*methods/],
  ['content-range: bytes 0-1/2', 'x-range: none', /^40010 .*Content-Range/],
  ['content-encoding: gzip', 'content-encoding: identity', /^41502 .*Content-Encoding/],
  ['gzip, chunked', 'chunked', /^41502 .*chunked/],
  ['text/plain', 'application/json', /^41501 .*media type/],
  ['{', '{"id":1,"name":"n"}', /^40001 .*JSON/],
]

test('of all that is wrong with a request the first is told, in one order', async () => {
  for (const [righted, [, , told]] of faults.entries()) {
    const parts = faults.map(([wrong, right], index) => (index < righted ? right : wrong))
    const [
      version,
      host,
      expectation,
      token,
      path = '',
      range,
      coding,
      chunks,
      type,
      body = '',
    ] = parts
    const fields = [
      host,
      expectation,
      `authorization: Bearer ${token}`,
      range,
      coding,
      `content-type: ${type}`,
    ]
    const head = [
      `PUT ${path} HTTP/${version}`,
      ...fields,
      `transfer-encoding: ${chunks}`,
    ].join('\r\n')
    const request = `${head}\r\n\r\n${chunk(body)}${chunk('')}`
    const { error, message } = JSON.parse(
      `${(await client.exchange(client.asked(`PUT ${path}`), request)).body}`,
    )
    expect(`${error} ${message}`).toMatch(told)
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
  if (`${message}`.includes('expectation')) {
    expect(answer.headers.get('connection')).toBe('close')
  }
})

test.each([
  [Buffer.alloc(0), /^the request has no body$/],
  [Buffer.from([0x22, 0xff, 0x22]), /^the body is not valid UTF-8$/],
  [Buffer.from('{"id":'), /^the body is not valid JSON: ./],
])('what is no JSON is told as what it is: %#', async (body, message) => {
  const answer = await client.postBare(body)
  expect(JSON.parse(`${answer.body}`)).toEqual({
    error: 40001,
    message: expect.stringMatching(message),
  })
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
    client.exchange(
      client.asked('GET /healthz'),
      `GET /healthz HTTP/1.1\r\nhost: ${host}\r\n\r\n`,
    )
  for (const host of [
    '',
    'A',
    'a:1',
    "a.b-c_d~!$&'()*+;=:",
    '%41',
    '[::1]',
    '[::1]:80',
  ]) {
    expect((await ask(host)).status, host).toBe(200)
  }
  const error = {
    error: 40007,
    message: 'the header field host must be a host with an optional port',
  }
  const wrong = ['a,b', 'a b', 'a/b', 'a@b', '%4', '%4g', 'a:b', 'a:1:2']
  for (const host of [...wrong, '[::1', '[::1]x', '[fe80::1%eth0]', '[1.2.3.4]', '[]']) {
    expect(JSON.parse(`${(await ask(host)).body}`), host).toEqual(error)
  }
})
