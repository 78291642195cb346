import { createClient } from '@plant-store/http/testing'
import { afterAll, describe, expect, test } from 'vitest'
import { headerFieldsMax } from '../src/limits.ts'
import { startService } from './memory-service.ts'

const service = await startService()
// The description has no place for an answer about the server as a whole.
const client = createClient(service, { check() {} })
afterAll(async () => {
  client.close()
  await service[Symbol.asyncDispose]()
})

/** Returns the status and the error number of the answer to a request without a body. */
async function ask(line: string, ...fields: readonly string[]): Promise<string> {
  const token = `authorization: Bearer ${service.tokens.full}`
  const head = [`${line} HTTP/1.1`, token, ...fields].join('\r\n')
  const answer = await client.exchange(client.asked(line), `${head}\r\n\r\n`)
  const { error = '' } = JSON.parse(`${answer.body}` || '{}')
  return `${answer.status} ${error}`.trim()
}

describe('the header field Host', () => {
  test.each([
    "a_b~c!$&'()*;=%C3%A4.PLANTS:8080",
    'xn--pflnzchen-z2a.example:',
    '127.0.0.1:3000',
    '[2001:db8::1]:443',
    '',
  ])('may be "%s"', async host => {
    expect(await ask('GET /healthz', `host: ${host}`)).toBe('200')
  })

  test.each([
    'a b',
    'user:password@host',
    'host:port',
    'host:80:80',
    'http://host',
    'host/path',
    'host?query',
    'host#fragment',
    'a,b',
    'a\\b',
    'a%zz',
    'pfl\u00e4nzchen',
    '::1',
    '[::1',
    '[host]',
    '[1:2]',
    '[::1]a',
    '[::1%25eth0]',
  ])('may not be "%s"', async host => {
    expect(await ask('GET /healthz', `host: ${host}`)).toBe('400 40007')
  })
})

describe('a request target', () => {
  test.each(
    Object.entries({
      'GET http://host?a=/b': '302',
      'GET HTTPS://[::1]:8080/healthz': '200',
      'GET http://user@host/healthz': '400 40007',
      'OPTIONS *': '204',
      'OPTIONS http://host': '204',
      'OPTIONS /*': '404 40401',
      'GET *': '400 40000',
    }),
  )('in the form of "%s" gets %s', async (target, answer) => {
    expect(await ask(target, 'host: h')).toBe(answer)
  })

  test('of the whole server gets its methods, and needs a token', async () => {
    const asked = { method: 'OPTIONS', target: '*' }
    const token = `authorization: Bearer ${service.tokens.metrics}\r\n`

    const withoutToken = await client.exchange(
      asked,
      'OPTIONS * HTTP/1.1\r\nhost: h\r\n\r\n',
    )
    const withToken = await client.exchange(
      asked,
      `OPTIONS * HTTP/1.1\r\nhost: h\r\n${token}\r\n`,
    )

    expect(withoutToken.status).toBe(401)
    expect(withToken.headers.get('allow')).toBe('GET, HEAD, POST, PUT, DELETE')
  })
})

test('a condition behind too many fields is refused, not ignored', async () => {
  await client.ask('PUT', '/plants/1', { body: '{"name":"kept"}' })
  const put = (fields: readonly string[]) =>
    ask('PUT /plants/1', 'host: h', 'content-length: 0', ...fields)
  // A token, Host and the length come first.
  const many = Array<string>(headerFieldsMax - 4).fill('a: b')

  const withMost = await put([...many, 'if-match: "none"'])
  const withOneMore = await put(['a: b', ...many, 'if-match: "none"'])
  const withMoreThanNodeReads = await put([...many, ...many, 'if-match: "none"'])

  expect(withMost, 'as many as allowed').toBe('400 40001')
  expect(withOneMore, 'one more').toBe('431 43101')
  expect(withMoreThanNodeReads, 'twice as many').toBe('431 43101')
})
