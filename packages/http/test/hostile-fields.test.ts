import { createClient } from '@plant-store/http/testing'
import { afterAll, expect, test } from 'vitest'
import { startService } from './memory-service.ts'

/**
 * Before a request is admitted, and often before it is refused, expressions look at what
 * anybody may send. Each must do so in linear time. Fields of 100 kB tell the two apart
 * on any machine: they take milliseconds, and with the square of the length seconds.
 */
const length = 100_000
const msMax = 2_000
const limits = { headerBytesMax: 2 ** 22 }
const service = await startService({
  trustedProxies: ['127.0.0.1'],
  corsOrigins: ['http://a'],
  limits,
})
// Some targets lead to `/`, which the description does not have.
const client = createClient(service, { check() {} })
afterAll(async () => {
  client.close()
  await service[Symbol.asyncDispose]()
})

interface Sent {
  readonly method?: string
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Where a client may write what it likes, and what stands before that. */
const places: Readonly<Record<string, (text: string) => Sent>> = {
  authorization: authorization => ({ headers: { authorization } }),
  'a token': text => ({ headers: { authorization: `Bearer a${text}` } }),
  'a token with the scheme': text => ({ headers: { authorization: `Bearer ${text}` } }),
  'x-forwarded-for with a wrong token': text => ({
    headers: { authorization: 'Bearer wrong', 'x-forwarded-for': text },
  }),
  'content-type': text => post({ 'content-type': text }),
  'parameters of content-type': text =>
    post({ 'content-type': `application/json;${text}` }),
  charset: text => post({ 'content-type': `application/json; charset=${text}` }),
  'a quoted charset': text =>
    post({ 'content-type': `application/json; charset="${text}` }),
  'content-encoding': text => post({ 'content-encoding': text }),
  expect: text => post({ expect: text }),
  'a path': path => ({ path: `/${encodeSpaces(path)}` }),
  'an id': path => ({ path: `/plants/${encodeSpaces(path)}` }),
  'a query': query => ({ path: `/plants?${encodeSpaces(query)}` }),
  'a limit': query => ({ path: `/plants?limit=${encodeSpaces(query)}` }),
  'a tag': query => ({ path: `/plants?tag=${encodeSpaces(query)}` }),
  'a whole URL': path => ({ path: `http://${encodeSpaces(path)}` }),
  host: text => ({ headers: { host: text } }),
  'every other field, at once': text => ({
    path: '/plants/1',
    headers: Object.fromEntries(
      [
        'x-request-id x-forwarded-for x-forwarded-host x-forwarded-proto forwarded accept accept-encoding origin',
        'access-control-request-method if-match range cookie traceparent tracestate te via',
      ]
        .flatMap(names => names.split(' '))
        .map(name => [name, text]),
    ),
  }),
}

const post = (headers: Readonly<Record<string, string>>): Sent => ({
  method: 'POST',
  headers,
})
const encodeSpaces = (text: string) => text.replaceAll(/[ \t"<>]/g, encodeURIComponent)

const pieces = [
  ...' \ta0-/.:%+&?#="\\;,<{[(',
  ...'a |-1|//|..|::|%20|%zz|&a=|&limit=|""|\\"|; |;a=|; charset|; charset='.split('|'),
  ...', |a,|<>|127.0.0.1,|1.|::1,|Bearer |W/"a",|a=b;'.split('|'),
]

test.each(Object.keys(places))(
  '%s of any kind is looked at in linear time',
  async name => {
    for (const piece of pieces) {
      const escapes = name.includes('path') ? 3 : 1
      // Some expressions only fail, and then try again, at the end.
      const text = `${piece.repeat(length / escapes / piece.length)}b"/`
      const sent = places[name]?.(text) as Sent
      const ms = await msOf(sent)
      // Measure again, because a busy machine delays single requests only.
      const leastMs = ms > msMax ? Math.min(ms, await msOf(sent)) : ms
      expect(leastMs, `many ${JSON.stringify(piece)}`).toBeLessThan(msMax)
    }
  },
  60_000,
)

async function msOf({ method = 'GET', path = '/plants', headers = {} }: Sent) {
  const beganAt = performance.now()
  const body = method === 'POST' && { body: '{}' }
  const { status } = await client.ask(method, path, { headers, ...body })
  expect(status, `${method} of a hostile field or path`).toBeLessThan(500)
  return performance.now() - beganAt
}
