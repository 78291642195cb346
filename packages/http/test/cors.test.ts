import { expect, test } from 'vitest'
import { startMemoryService } from './memory-service.ts'

const origin = 'https://plants.example'
const preflight = { 'access-control-request-method': 'POST' }

async function ask(
  corsOrigins: readonly string[] | undefined,
  method: string,
  headers: Record<string, string>,
): Promise<[status: number, fields: Record<string, string>]> {
  await using service = await startMemoryService(corsOrigins && { corsOrigins })
  const { status, headers: answered } = await fetch(`${service.url}/plants`, { method, headers })
  const fields = [...answered].filter(([name]) => name.startsWith('access-control-') || name === 'vary')
  return [status, Object.fromEntries(fields)]
}

const vary = 'origin'
const allowed = { vary, 'access-control-allow-origin': origin }
const exposed = {
  ...allowed,
  'access-control-expose-headers':
    'etag, link, total-count, www-authenticate, retry-after, allow, x-request-id',
}

test.each<
  [string, readonly string[] | undefined, string, Record<string, string>, number, Record<string, string>]
>([
  ['nobody is allowed', [], 'GET', { origin }, 401, {}],
  ['nothing is said of others', undefined, 'GET', { origin }, 401, {}],
  ['nobody is allowed, to a preflight', [], 'OPTIONS', { origin, ...preflight }, 401, {}],
  ['its origin is allowed', ['http://a', origin], 'GET', { origin }, 401, exposed],
  ['another is allowed', [origin], 'GET', { origin: 'https://other.example' }, 401, { vary }],
  ['it is no page', [origin], 'GET', {}, 401, { vary }],
  ['it is no preflight', [origin], 'OPTIONS', { origin }, 401, exposed],
  ['it is a method of its own', [origin], 'GET', { origin, ...preflight }, 401, exposed],
  [
    'another is allowed, to a preflight',
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
        'authorization, content-type, if-match, if-none-match, x-request-id, traceparent, tracestate',
      'access-control-max-age': '7200',
    },
  ],
])('what a page is told where %s', async (_, origins, method, headers, status, fields) => {
  expect(await ask(origins, method, headers)).toEqual([status, fields])
})
