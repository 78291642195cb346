import assert from 'node:assert/strict'
import { assertFailure, assertSuccess } from '../assertions.ts'
import { type ContractCase, casesForEach, casesOf } from '../contract-case.ts'
import { jsonOf } from '../exact-json.ts'

/** The pages that a monitor reads, and a part of their content. */
const probed: readonly (readonly [path: string, content: RegExp])[] = [
  ['/healthz', /"ok"/],
  ['/readyz', /"ready"/],
  ['/metrics', /^# HELP /],
  ['/openapi.json', /"openapi"/],
]

export const openPageCases: readonly ContractCase[] = [
  ...casesForEach(
    'health is open to everybody',
    [null, 'plantstore_wrong'],
    token => `GET /healthz and /readyz answer with the token ${token}`,
    async (client, token) => {
      const health = await client.ask('GET', '/healthz', { token })
      const readiness = await client.ask('GET', '/readyz', { token })

      assertSuccess(health, { status: 'ok' })
      assertSuccess(readiness, { status: 'ready' })
    },
  ),

  ...casesOf('health is open to everybody', {
    'and the pages of monitors ignore the parameters that these add': async client => {
      for (const [path, content] of probed) {
        const answer = await client.ask('GET', `${path}?cachebuster=%&cachebuster`, {
          token: client.store.tokens.metrics,
        })

        assert.equal(answer.status, 200, `${path}: ${answer.body}`)
        assert.match(`${answer.body}`, content, path)
      }
    },
  }),

  ...casesOf('everything else needs a token', {
    'GET /metrics needs one with metrics:read, which allows nothing else':
      async client => {
        const { full, metrics } = client.store.tokens
        assertFailure(await client.ask('GET', '/metrics', { token: null }), 40101)
        const refused = await client.ask('GET', '/metrics', { token: full })
        assertFailure(refused, 40301)
        assert.match(
          refused.headers.get('www-authenticate') ?? '',
          /scope="metrics:read"/,
        )
        assertFailure(await client.ask('GET', '/plants', { token: metrics }), 40301)
        const answer = await client.ask('GET', '/metrics', { token: metrics })
        assert.equal(answer.status, 200)
        assert.match(`${answer.body}`, /^# HELP http_requests_total /m)
      },
  }),

  ...casesOf('the served description', {
    'is open, OpenAPI 3.1.0, and of interface version 1.0.0': async client => {
      const answer = await client.ask('GET', '/openapi.json', { token: null })
      const { openapi, info } = jsonOf(answer) as {
        openapi: string
        info: { version: string }
      }
      assert.deepEqual([answer.status, openapi, info.version], [200, '3.1.0', '1.0.0'])
    },
  }),
]
