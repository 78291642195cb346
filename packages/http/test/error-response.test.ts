import { AccessError } from '@plant-store/access'
import { DomainError } from '@plant-store/domain'
import { expect, test } from 'vitest'
import { RequestError } from '../src/errors/error-numbers.ts'
import { toFailure } from '../src/errors/error-response.ts'

const challenge = 'Bearer realm="plant-store"'
const unknown = (error: Error) => Object.assign(error, { code: 'of-tomorrow' })
const by = (code: string) =>
  Object.assign(new Error('words of Fastify'), { code, statusCode: 400 })

test.each<
  [
    unknown,
    status: number,
    error: number,
    message: string,
    headers?: Record<string, string>,
  ]
>([
  [
    new RequestError('bad-host', 'no host', { a: 'b' }),
    400,
    40007,
    'no host',
    { a: 'b' },
  ],
  [
    new RequestError('draining', 'stops', { a: 'b' }),
    503,
    50303,
    'stops',
    { a: 'b', 'retry-after': '1' },
  ],
  [new RequestError('bad-json', 'a lone \ud800'), 400, 40001, 'a lone \ufffd'],
  [new DomainError('id-taken', 'taken'), 400, 40003, 'taken'],
  [new DomainError('store-busy', 'busy'), 503, 50301, 'busy', { 'retry-after': '1' }],
  [
    new AccessError('no-token', 'none'),
    401,
    40101,
    'none',
    { 'www-authenticate': challenge },
  ],
  [
    new AccessError('invalid-token', 'a "b" \\ é\n'),
    401,
    40102,
    'a "b" \\ é\n',
    {
      'www-authenticate': `${challenge}, error="invalid_token", error_description="a \\"b\\" \\\\ ??"`,
    },
  ],
  [
    new AccessError('insufficient-scope', 'lacks it', 'plants:write'),
    403,
    40301,
    'lacks it',
    {
      'www-authenticate': `${challenge}, error="insufficient_scope", error_description="lacks it", scope="plants:write"`,
    },
  ],
  [
    new AccessError('access-unavailable', 'not now'),
    503,
    50306,
    'not now',
    { 'retry-after': '1' },
  ],
  [
    by('FST_ERR_CTP_INVALID_MEDIA_TYPE'),
    415,
    41501,
    'The body must have the media type of the operation, in UTF-8',
  ],
  [
    by('FST_ERR_BAD_URL'),
    400,
    40006,
    'The request target is not correctly percent-encoded UTF-8',
  ],
])('%o is answered as itself', (thrown, status, error, message, headers = {}) => {
  expect(toFailure(thrown)).toEqual({
    status,
    headers: { 'cache-control': 'no-store', ...headers },
    body: { error, message },
    isDefect: false,
  })
})

test.each([
  new Error('secret'),
  'secret',
  unknown(new DomainError('id-taken', 'secret')),
  // Every object has a member of this name.
  Object.assign(new Error('secret'), { code: 'toString' }),
])('%o is a defect, of which a client is told nothing', thrown => {
  expect(toFailure(thrown)).toEqual({
    status: 500,
    headers: { 'cache-control': 'no-store' },
    body: { error: 50001, message: 'the server failed to answer this request' },
    isDefect: true,
  })
})
