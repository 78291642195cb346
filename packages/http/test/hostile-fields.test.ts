import { createClient } from '@plant-store/http/testing'
import { afterAll, expect, test } from 'vitest'
import { startService } from './memory-service.ts'

/**
 * Before a request is admitted, and often before it is refused, expressions look at what
 * anybody may send. Each must do so in linear time. Fields of 40 kB tell the two apart
 * on any machine: they take milliseconds, and with the square of the length seconds.
 */
const length = 40_000
const msMax = 1_000
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

/** Header fields in which a client may write what it likes, up to where it does. */
const fields = [
  'authorization: ',
  'authorization: Bearer ',
  'authorization: Bearer a',
  'content-type: ',
  'content-type: application/json;',
  'content-type: application/json; charset=',
  'content-type: application/json; charset="',
  'content-encoding: ',
  'expect: ',
  'host: ',
  'x-forwarded-for: ',
  'x-request-id: ',
  'origin: ',
  'access-control-request-method: ',
  'if-match: ',
  'if-none-match: ',
]

const targets = ['/', '/plants/', '/plants?', '/plants?limit=', '/plants?tag=', 'http://']

const pieces = [
  ...' \ta0-/.:%+&?#="\\;,<{[(',
  ...['a ', '//', '..', '%20', '%zz', '&a=', '""', '\\"', '; ', ';a=', '; charset='],
  ...[', ', 'a,', '<>', '1.', '::1,', 'W/"a",'],
]

test.each(fields)('a field is looked at in linear time after "%s"', async field => {
  const [name = '', start] = field.split(': ')

  await expectLinear(length, text => ({
    method: 'PUT',
    path: '/plants/1',
    headers: { [name]: start + text },
  }))
})

test.each(targets)('a target is looked at in linear time after %s', async start => {
  await expectLinear(length / 2, text => ({
    method: 'GET',
    path: start + text.replaceAll(/[ \t"<>]/g, encodeURIComponent),
    headers: {},
  }))
})

interface Sent {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
}

async function expectLinear(bytes: number, place: (text: string) => Sent) {
  for (const piece of pieces) {
    // Some expressions only fail, and then try again, at the end.
    const sent = place(`${piece.repeat(bytes / piece.length)}b"/`)
    expect(await processorMsOf(sent), `many ${JSON.stringify(piece)}`).toBeLessThan(msMax)
  }
}

/** The server runs in this process. Its processor time is the same on a busy machine. */
async function processorMsOf({ method, path, headers }: Sent) {
  const before = process.cpuUsage()
  const body = method === 'PUT' && { body: '{}' }
  const { status } = await client.ask(method, path, { headers, ...body })
  expect(status, `${method} of a hostile field or path`).toBeLessThan(500)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}
