import { AccessError } from '@plant-store/access'
import { DomainError } from '@plant-store/domain'
import { expect, test } from 'vitest'
import { RequestError } from '../src/errors/error-numbers.ts'
import { toFailure } from '../src/errors/error-response.ts'

const challenge = 'Bearer realm="plant-store"'
const unknown = (error: Error) => Object.assign(error, { code: 'of-tomorrow' })
const fields = { a: 'b' }
const retry = { 'retry-after': '1' }
const describedAs = (text: string) => ({ 'www-authenticate': `${challenge}${text}` })

test.each<[unknown, error: number, message: string, headers?: Record<string, string>]>([
  [
    new RequestError('draining', 'stops', fields),
    50303,
    'stops',
    { ...fields, ...retry },
  ],
  [new RequestError('bad-json', 'a lone \ud800'), 40001, 'a lone \ufffd'],
  [
    new AccessError('invalid-token', 'a "b" \\ é\n'),
    40102,
    'a "b" \\ é\n',
    describedAs(', error="invalid_token", error_description="a \\"b\\" \\\\ ??"'),
  ],
  [new AccessError('access-unavailable', 'not now'), 50306, 'not now', retry],
])('%o is answered as itself', (thrown, error, message, headers) => {
  expect(toFailure(thrown)).toEqual({
    status: Math.floor(error / 100),
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
