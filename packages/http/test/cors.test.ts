import { afterAll, expect, test } from 'vitest'
import { type Service, startService } from './memory-service.ts'

const origin = 'https://plants.example'
const preflight = { 'access-control-request-method': 'POST' }

const vary = 'origin'
const allowed = { vary, 'access-control-allow-origin': origin }
const exposed = {
  ...allowed,
  'access-control-expose-headers':
    'etag, link, total-count, www-authenticate, retry-after, allow, x-request-id',
}

const service = await startService({ corsOrigins: ['http://a', origin] })
afterAll(() => service[Symbol.asyncDispose]())

async function ask({ url }: Service, method: string, headers: Record<string, string>) {
  const answer = await fetch(`${url}/plants`, { method, headers })
  const fields = [...answer.headers].filter(
    ([name]) => name.startsWith('access-control-') || name === 'vary',
  )
  return { status: answer.status, fields: Object.fromEntries(fields) }
}

test('a page names each field that its answer depends on', async () => {
  const page = await fetch(`${service.url}/docs`)

  expect(page.headers.get('vary')).toBe('origin, accept-encoding')
})

test('where no origin is allowed, an answer has no such field', async () => {
  await using closed = await startService()

  const answer = await ask(closed, 'OPTIONS', { origin, ...preflight })

  expect(answer).toEqual({ status: 401, fields: {} })
})

test('a preflight of an allowed origin needs no token', async () => {
  const answer = await ask(service, 'OPTIONS', { origin, ...preflight })

  expect(answer).toEqual({
    status: 204,
    fields: {
      ...allowed,
      'access-control-allow-methods': 'GET, HEAD, POST, PUT, DELETE',
      'access-control-allow-headers':
        'authorization, content-type, if-match, if-none-match, x-request-id, traceparent, tracestate, baggage, *',
      'access-control-max-age': '7200',
    },
  })
})

test.each<[string, string, Record<string, string>, Record<string, string>]>([
  ['a page of an allowed origin', 'GET', { origin }, exposed],
  ['what is no page', 'GET', {}, { vary }],
  ['what is no preflight', 'OPTIONS', { origin }, exposed],
  ['a method of its own', 'GET', { origin, ...preflight }, exposed],
  ['another origin', 'OPTIONS', { origin: 'http://b', ...preflight }, { vary }],
])('%s needs a token, and may read so much', async (_, method, headers, fields) => {
  expect(await ask(service, method, headers)).toEqual({ status: 401, fields })
})
