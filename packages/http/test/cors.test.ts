import { expect, test } from 'vitest'
import { startService } from './memory-service.ts'

const origin = 'https://plants.example'
const preflight = { 'access-control-request-method': 'POST' }

const vary = 'origin'
const allowed = { vary, 'access-control-allow-origin': origin }
const exposed = {
  ...allowed,
  'access-control-expose-headers':
    'etag, link, total-count, www-authenticate, retry-after, allow, x-request-id',
}

test('a page names each field that its answer depends on', async () => {
  await using service = await startService({ corsOrigins: [origin] })

  const page = await fetch(`${service.url}/docs`)

  expect(page.headers.get('vary')).toBe('origin, accept-encoding')
})

test.each<
  [
    string,
    readonly string[],
    string,
    Record<string, string>,
    number,
    Record<string, string>,
  ]
>([
  ['nobody is allowed', [], 'GET', { origin }, 401, {}],
  ['nobody is allowed, to a preflight', [], 'OPTIONS', { origin, ...preflight }, 401, {}],
  ['its origin is allowed', ['http://a', origin], 'GET', { origin }, 401, exposed],
  ['it is no page', [origin], 'GET', {}, 401, { vary }],
  ['it is no preflight', [origin], 'OPTIONS', { origin }, 401, exposed],
  ['it is a method of its own', [origin], 'GET', { origin, ...preflight }, 401, exposed],
  [
    'another is allowed',
    [origin],
    'OPTIONS',
    { origin: 'http://a', ...preflight },
    401,
    { vary },
  ],
  [
    'its origin is allowed, to a preflight',
    [origin],
    'OPTIONS',
    { origin, ...preflight },
    204,
    {
      ...allowed,
      'access-control-allow-methods': 'GET, HEAD, POST, PUT, DELETE',
      'access-control-allow-headers':
        'authorization, content-type, if-match, if-none-match, x-request-id, traceparent, tracestate, baggage, *',
      'access-control-max-age': '7200',
    },
  ],
])(
  'what a page is told where %s',
  async (_, corsOrigins, method, headers, status, fields) => {
    await using service = await startService({ corsOrigins })
    const answer = await fetch(`${service.url}/plants`, { method, headers })
    const told = [...answer.headers].filter(
      ([name]) => name.startsWith('access-control-') || name === 'vary',
    )
    expect([answer.status, Object.fromEntries(told)]).toEqual([status, fields])
  },
)
