import assert from 'node:assert/strict'
import { type AskOptions, bareRequest, hostAndToken } from '../client.ts'
import {
  assertAbsent,
  assertFailure,
  assertSuccess,
  barred,
  type ContractCase,
  casesForEach,
  casesOf,
  free,
  ownId,
  toJson,
} from '../contract-case.ts'
import type { Answer, Asked } from '../wire.ts'

const realm = 'Bearer realm="plant-store"'
const invalidToken = /^Bearer realm="plant-store", error="invalid_token"/

type Request = readonly [method: string, path: string, options?: AskOptions]

const requests = (text: string) =>
  barred(text).map(each => each.split(' ') as [string, string])
/** Requests that no scope would allow. */
const undeclared = requests(
  'PATCH /plants|POST /plants/1|OPTIONS /plants|TRACE /plants/1|GET /plants/batch',
)

/** The plants of these requests: the second exists. */
const [newId, id] = [ownId(), ownId()]
const path = `/plants/${id}`
const body = '{"name":"stored by no cache"}'

/** Requests whose answers have plants, or say that one is unchanged. */
const dataRequests: readonly Request[] = [
  ['POST', '/plants', { body: toJson({ id: newId, name: 'stored by no cache' }) }],
  ['PUT', path, { body }],
  ['GET', path],
  ['HEAD', path],
  ['GET', path, { headers: { 'if-none-match': '*' } }],
  ['GET', '/plants?limit=1'],
  ['POST', '/plants/batch', { headers: { 'content-type': 'application/x-ndjson' } }],
]

/** Wrong in other respects than the token. */
const wrong: readonly Request[] = [
  ['POST', '/plants', { body: '{}' }],
  ['POST', '/plants', { body: '{}', headers: { 'content-type': 'text/plain' } }],
  ['PUT', '/plants/x', { body: 'no JSON' }],
  ...requests('GET /plants/x|GET /plants?limit=%zz|GET /no-such-path|OPTIONS /plants'),
]

export const accessCases: readonly ContractCase[] = [
  ...casesForEach(
    'an answer with plants',
    dataRequests,
    ([method, target, options]) =>
      `is stored by no cache, and is no page: ${method} ${target} ${toJson(options?.headers ?? {})}`,
    async (client, [method, target, options]) => {
      await free(client, [newId])
      await client.ask('PUT', path, { body })

      const answer = await client.ask(method, target, options)

      assert.ok(answer.status === 200 || answer.status === 304, `${answer.status}`)
      assert.equal(answer.headers.get('cache-control'), 'no-store')
      assert.equal(answer.headers.get('x-content-type-options'), 'nosniff')
    },
  ),

  ...casesOf('RFC 6750', {
    'the scheme is taken in any case, and another scheme is no token': async client => {
      const { full } = client.store.tokens
      const ask = (path: string, authorization: string) =>
        client.ask('GET', path, { token: null, headers: { authorization } })
      for (const scheme of ['Bearer', 'bEaReR']) {
        assertSuccess(await ask('/plants?tag=none%20such', `${scheme} ${full}`), [])
      }
      for (const authorization of [
        `Basic bearer ${full}`,
        full,
        'Bearer',
        `Bearer${full}`,
      ]) {
        const answer = await ask('/plants', authorization)
        assertFailure(answer, 40101, 'Authorization must be "Bearer", a space')
        assert.equal(challengeOf(answer), realm)
      }
    },

    'what is no token gets the form of the header field': async client => {
      const { full } = client.store.tokens
      for (const token of [
        `Bearer ${full}`,
        `${full} ${full}`,
        `"${full}"`,
        `<${full}>`,
      ]) {
        const answer = await client.ask('GET', '/plants', { token })

        assertFailure(answer, 40102, 'Authorization must be "Bearer", a space')
        assert.match(challengeOf(answer), invalidToken)
      }
    },

    'a token must be it to the letter, and stand in the header only': async client => {
      const { full } = client.store.tokens
      const short = full.slice(0, -1)
      for (const token of [
        short,
        `${full}x`,
        `${full} ${full}`,
        `"${full}"`,
        full.toUpperCase(),
      ]) {
        const answer = await client.ask('GET', '/plants', { token })
        assertFailure(answer, 40102)
        assert.match(challengeOf(answer), invalidToken)
        assert.doesNotMatch(
          `${answer.body}${[...answer.headers.values()]}`,
          new RegExp(short),
        )
      }
      assertFailure(
        await client.ask('GET', `/plants?access_token=${full}`, { token: null }),
        40101,
      )
      const form = await client.ask('POST', '/plants', {
        token: null,
        body: `access_token=${full}`,
      })
      assertFailure(form, 40101)
    },

    'an expired token is an invalid one': async client => {
      const answer = await client.ask('GET', '/plants', {
        token: client.store.tokens.expired,
      })
      assertFailure(answer, 40102, 'expired')
      assert.match(challengeOf(answer), invalidToken)
    },

    'a token without the scope changes nothing, and one with it needs no other':
      async client => {
        const { readOnly, writeOnly } = client.store.tokens
        const plant = { id: ownId(), name: 'kept' }
        const body = toJson(plant)
        assertFailure(
          await client.ask('POST', '/plants', { token: readOnly, body }),
          40301,
        )
        await assertAbsent(client, plant.id)
        assert.equal(
          (await client.ask('POST', '/plants', { token: writeOnly, body })).status,
          200,
        )
        assertFailure(
          await client.ask('DELETE', `/plants/${plant.id}`, { token: readOnly }),
          40301,
        )
        assertSuccess(
          await client.ask('GET', `/plants/${plant.id}`, { token: readOnly }),
          plant,
        )
        assert.equal(
          (await client.ask('DELETE', `/plants/${plant.id}`, { token: writeOnly }))
            .status,
          204,
        )
      },

    'no scope is asked of a good token for what no scope would allow': async client => {
      for (const token of [client.store.tokens.readOnly, client.store.tokens.metrics]) {
        for (const [method, path] of undeclared) {
          const answer = await client.ask(method, path, { token })
          assertFailure(answer, 40501)
          assert.equal(challengeOf(answer), 'none')
        }
        assertFailure(await client.ask('DELETE', '/nowhere', { token }), 40401)
      }
    },
  }),

  ...casesOf('authentication comes first', {
    '401 before 400, 404, 405, 413 and 415': async client => {
      for (const [method, path, options] of wrong) {
        assertFailure(await client.ask(method, path, { ...options, token: null }), 40101)
        assertFailure(
          await client.ask(method, path, { ...options, token: 'plantstore_wrong' }),
          40102,
        )
      }
    },

    '401 before the body is read, however large it says it is, and without a 100':
      async client => {
        const asked = client.asked('POST /plants')
        // The body never arrives. A server that waited for it would not answer.
        for (const length of barred(
          'content-length: 99999999999|transfer-encoding: chunked',
        )) {
          const fields = ['host: h', length, 'expect: 100-continue']
          const answer = await client.exchange(asked, postHead(asked, fields))
          assertFailure(answer, 40101)
          assert.deepEqual(answer.interim, [])
        }
      },

    'Expect: 100-continue with a token gets 100, then the answer to the body':
      async client => {
        const asked = client.asked('POST /plants')
        const id = ownId()
        const body = toJson({ id, name: 'expected' })
        const fields = [...hostAndToken(client), 'Expect: 100-Continue']
        using wire = await client.open()
        wire.send(postHead(asked, [...fields, `content-length: ${body.length}`]))
        assert.equal(await wire.interim(), 100)
        await assertAbsent(client, id)
        wire.send(body)
        assertSuccess(await wire.answer(asked), { name: 'expected' })
      },
  }),
]

function challengeOf({ headers }: Answer): string {
  return headers.get('www-authenticate') ?? 'none'
}

/** Returns the bytes before a body of JSON. */
function postHead(asked: Asked, fields: readonly string[]): string {
  return bareRequest(asked, [...fields, 'content-type: application/json'])
}
