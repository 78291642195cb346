import assert from 'node:assert/strict'
import {
  assertAbsent,
  assertFailure,
  assertSuccess,
  bareRequest,
  type ContractCase,
  create,
  ownId,
  toJson,
} from '../contract-case.ts'

const first = 'Decision 5, authentication comes first'
const challenges = 'Decision 5, RFC 6750'
const realm = 'Bearer realm="plant-store"'

const operations = ['POST /plants', 'GET /plants', 'GET /plants/1', 'PUT /plants/1', 'DELETE /plants/1'].map(
  each => each.split(' ') as [method: string, path: string],
)

export const accessCases: readonly ContractCase[] = [
  {
    clause: 'Fixed, every operation needs a token',
    name: '401 to each without one, and with a wrong one, saying which of the two',
    async run(client) {
      for (const [method, path] of operations) {
        const none = await client.ask(method, path, { token: null })
        assertFailure(none, 40101)
        assert.equal(none.headers.get('www-authenticate'), realm)
        const wrong = await client.ask(method, path, { token: 'plantstore_wrong' })
        assertFailure(wrong, 40102)
        assert.match(
          wrong.headers.get('www-authenticate') ?? '',
          /^Bearer realm="plant-store", error="invalid_token"/,
        )
      }
    },
  },
  {
    clause: challenges,
    name: 'the scheme is taken in any case, and another scheme is no token',
    async run(client) {
      const { full } = client.store.tokens
      for (const scheme of ['Bearer', 'bearer', 'BEARER', 'bEaReR']) {
        const answer = await client.ask('GET', '/plants?tag=none%20such', {
          token: null,
          headers: { authorization: `${scheme} ${full}` },
        })
        assertSuccess(answer, [])
      }
      for (const authorization of [
        `Basic ${btoa(`user:${full}`)}`,
        `Digest ${full}`,
        full,
        'Bearer',
        `Bearer${full}`,
      ]) {
        const answer = await client.ask('GET', '/plants', { token: null, headers: { authorization } })
        assertFailure(answer, 40101)
        assert.equal(answer.headers.get('www-authenticate'), realm)
      }
    },
  },
  {
    clause: challenges,
    name: 'a token must be it to the letter, and stand in the header only',
    async run(client) {
      const { full } = client.store.tokens
      const wrong = [
        full.slice(0, -1),
        `${full}x`,
        `${full} ${full}`,
        `"${full}"`,
        full.toUpperCase(),
        `${full},`,
      ]
      for (const token of wrong) {
        const answer = await client.ask('GET', '/plants', { token })
        assertFailure(answer, 40102)
        assert.match(answer.headers.get('www-authenticate') ?? '', /error="invalid_token"/)
        assert.doesNotMatch(`${answer.body}${[...answer.headers.values()]}`, new RegExp(full.slice(0, -1)))
      }
      assertFailure(await client.ask('GET', `/plants?access_token=${full}`, { token: null }), 40101)
      const form = await client.ask('POST', '/plants', { token: null, body: `access_token=${full}` })
      assertFailure(form, 40101)
    },
  },
  {
    clause: challenges,
    name: 'an expired token is an invalid one',
    async run(client) {
      const answer = await client.ask('GET', '/plants', { token: client.store.tokens.expired })
      assertFailure(answer, 40102, 'expired')
      assert.match(answer.headers.get('www-authenticate') ?? '', /error="invalid_token"/)
    },
  },
  {
    clause: challenges,
    name: 'a token without the scope gets 403, and changes nothing',
    async run(client) {
      const { readOnly, writeOnly } = client.store.tokens
      const plant = { id: ownId(), name: 'kept' }
      await create(client, plant)
      for (const [method, path] of operations) {
        const own = path.replace(/1$/, `${plant.id}`)
        const isRead = method === 'GET'
        const body = toJson({ id: plant.id, name: 'changed' })
        const answer = await client.ask(method, own, {
          token: isRead ? writeOnly : readOnly,
          ...(method === 'POST' || method === 'PUT' ? { body } : {}),
        })
        assertFailure(answer, 40301)
        const challenge = answer.headers.get('www-authenticate') ?? ''
        assert.match(challenge, /^Bearer realm="plant-store", error="insufficient_scope"/)
        assert.match(challenge, isRead ? /scope="plants:read"/ : /scope="plants:write"/)
      }
      assert.equal((await client.ask('HEAD', '/plants', { token: writeOnly })).status, 403)
      assertSuccess(await client.ask('GET', `/plants/${plant.id}`, { token: readOnly }), plant)
      const own = ownId()
      const body = toJson({ id: own, name: 'n' })
      assert.equal((await client.ask('POST', '/plants', { token: writeOnly, body })).status, 200)
      assert.equal((await client.ask('DELETE', `/plants/${own}`, { token: writeOnly })).status, 204)
    },
  },
  {
    clause: challenges,
    name: 'no scope is asked of a good token for what no scope would allow',
    async run(client) {
      const { readOnly, writeOnly, metrics } = client.store.tokens
      for (const token of [readOnly, writeOnly, metrics]) {
        for (const [method, path] of [
          ['PATCH', '/plants'],
          ['PATCH', '/plants/1'],
          ['DELETE', '/plants'],
          ['POST', '/plants/1'],
          ['OPTIONS', '/plants'],
          ['TRACE', '/plants/1'],
        ] as const) {
          const answer = await client.ask(method, path, { token })
          assertFailure(answer, 40501)
          assert.equal(answer.headers.has('www-authenticate'), false)
        }
        for (const method of ['GET', 'DELETE']) {
          assertFailure(await client.ask(method, '/nowhere', { token }), 40401)
        }
      }
    },
  },
  {
    clause: first,
    name: '401 before 400, 404, 405, 413 and 415',
    async run(client) {
      const wrongs: readonly (readonly [
        string,
        string,
        { body?: string; headers?: Record<string, string> },
      ])[] = [
        ['POST', '/plants', { body: 'no JSON' }],
        ['POST', '/plants', { body: '{}' }],
        ['POST', '/plants', { body: '' }],
        ['POST', '/plants', { body: '{}', headers: { 'content-type': 'text/plain' } }],
        ['POST', '/plants', { body: '{}', headers: { 'content-encoding': 'gzip' } }],
        ['PUT', '/plants/x', { body: 'no JSON' }],
        ['GET', '/plants/x', {}],
        ['GET', '/plants?limit=0', {}],
        ['GET', '/plants?limit=%zz', {}],
        ['GET', '/plants/1/leaves', {}],
        ['GET', '/', {}],
        ['POST', '/no-such-path', { body: '{}' }],
        ['PATCH', '/plants', { body: '{}' }],
        ['DELETE', '/plants', {}],
        ['POST', '/plants/1', { body: '{}' }],
        ['OPTIONS', '/plants', {}],
      ]
      for (const token of [null, 'plantstore_wrong']) {
        for (const [method, path, options] of wrongs) {
          assertFailure(await client.ask(method, path, { ...options, token }), token === null ? 40101 : 40102)
        }
      }
    },
  },
  {
    clause: first,
    name: '401 before the body is read, however large it says it is',
    async run(client) {
      const asked = { method: 'POST', target: client.target('/plants') }
      for (const length of [
        'content-length: 100',
        'content-length: 99999999999',
        'transfer-encoding: chunked',
      ]) {
        // The body never comes: who waited for it would not answer.
        const fields = ['host: h', 'content-type: application/json', length]
        assertFailure(await client.exchange(asked, bareRequest('POST', asked.target, fields)), 40101)
      }
    },
  },
  {
    clause: first,
    name: 'Expect: 100-continue without a token gets 401, and never a 100',
    async run(client) {
      const asked = { method: 'POST', target: client.target('/plants') }
      for (const authorization of [[], ['authorization: Bearer plantstore_wrong']]) {
        const fields = [
          'host: h',
          ...authorization,
          'content-type: application/json',
          'content-length: 2',
          'expect: 100-continue',
        ]
        const answer = await client.exchange(asked, bareRequest('POST', asked.target, fields))
        assertFailure(answer, authorization.length === 0 ? 40101 : 40102)
        assert.deepEqual(answer.interim, [])
      }
    },
  },
  {
    clause: first,
    name: 'Expect: 100-continue with a token gets 100, then the answer to the body',
    async run(client) {
      const asked = { method: 'POST', target: client.target('/plants') }
      const id = ownId()
      const body = toJson({ id, name: 'expected' })
      const fields = (length: number) => [
        'host: h',
        `authorization: Bearer ${client.store.tokens.full}`,
        'content-type: application/json',
        `content-length: ${length}`,
        'Expect: 100-Continue',
      ]
      using wire = await client.open()
      wire.send(bareRequest('POST', asked.target, fields(body.length)))
      assert.equal(await wire.interim(), 100)
      await assertAbsent(client, id)
      wire.send(body)
      assertSuccess(await wire.answer(asked), { name: 'expected' })

      const tooLarge = bareRequest('POST', asked.target, fields(client.store.bodyBytesMax + 1))
      const refused = await client.exchange(asked, tooLarge)
      assertFailure(refused, 41301)
      assert.deepEqual(refused.interim, [])
    },
  },
]
