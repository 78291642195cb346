import assert from 'node:assert/strict'
import {
  assertAbsent,
  assertAllKept,
  assertFailure,
  assertSuccess,
  create,
} from '../assertions.ts'
import { bareRequest, chunk, hostAndToken, plantRequest } from '../client.ts'
import { type ContractCase, casesForEach, casesOf, ownId } from '../contract-case.ts'
import { jsonOf, toJson } from '../exact-json.ts'

/** Fields that every request has once already, except the coding. */
const repeatedFields = [
  { field: 'authorization: Bearer another', error: 40102 },
  { field: 'content-type: application/json', error: 41501 },
  { field: 'content-encoding: identity\r\ncontent-encoding: gzip', error: 41502 },
]

/** Bytes after a request that no server can answer, and their failure. */
const garbage: readonly {
  readonly why: string
  readonly error: number
  readonly bytes: (headerBytesMax: number) => string
}[] = [
  { why: 'no HTTP', error: 40000, bytes: () => 'nonsense\r\n\r\n' },
  {
    why: 'fields too large',
    error: 43101,
    bytes: max => `GET / HTTP/1.1\r\nx: ${'y'.repeat(max)}\r\n\r\n`,
  },
]

const inOldVersion = (request: Buffer): string =>
  `${request}`.replace('HTTP/1.1', 'HTTP/1.0')

export const syntaxCases: readonly ContractCase[] = [
  ...casesForEach(
    'one shape for every failure',
    repeatedFields,
    ({ field }) => `a field that must stand once is refused twice: ${field}`,
    async (client, { field, error }) => {
      const id = ownId()

      const answer = await client.postBare(toJson({ id, name: 'n' }), [field])

      assertFailure(answer, error)
      await assertAbsent(client, id)
    },
  ),

  ...casesForEach(
    'one shape for every failure',
    ['/plants/%', '/plants/%zz', '/plants/%ff', '/%ed%a0%80'],
    path => `a path that is not correctly percent-encoded gets 400: ${path}`,
    async (client, path) => {
      assertFailure(await client.ask('GET', path), 40006)
    },
  ),

  ...casesForEach(
    'RFC 9110, 10.1.1',
    ['100-continue', 'a miracle'],
    expectation => `HTTP/1.0 knows no expectations: ${expectation} is ignored`,
    async (client, expectation) => {
      const asked = client.asked('POST /plants')
      const body = toJson({ id: ownId(), name: 'old' })
      const request = plantRequest(client, body, [`expect: ${expectation}`])

      const answer = await client.exchange(asked, inOldVersion(request))

      assertSuccess(answer, { name: 'old' })
      assert.deepEqual(answer.interim, [])
    },
  ),

  ...casesForEach(
    'RFC 9112',
    garbage,
    ({ why }) => `bytes after requests do not take their answers away: ${why}`,
    async (client, { error, bytes }) => {
      const asked = client.asked('POST /plants')
      const first = { id: ownId(), name: 'first' }
      const second = { id: ownId(), name: 'second' }
      const requests = [first, second].map(plant => plantRequest(client, toJson(plant)))

      using wire = await client.open()
      wire.send(...requests, bytes(client.store.headerBytesMax))

      assertSuccess(await wire.answer(asked), { name: 'first' })
      assertSuccess(await wire.answer(asked), { name: 'second' })
      assertFailure(await wire.answer(undefined), error)
      assert.equal((await wire.closed()).length, 0)
      await assertAllKept(client, [first, second])
    },
  ),

  ...casesOf('RFC 9112', {
    'a target in absolute form is taken for its path': async client => {
      const plant = { id: ownId(), name: 'n', tag: 'absolute form' }
      await create(client, plant)
      const ask = (origin: string, path: string) => {
        const asked = { method: 'GET', target: `${origin}${client.target(path)}` }
        return client.exchange(asked, bareRequest(asked, hostAndToken(client)))
      }
      assertSuccess(await ask('http://other.example:8080', `/plants/${plant.id}`), plant)
      assertSuccess(await ask('HTTPS://h', '/plants?limit=1&tag=absolute%20form'), [
        plant,
      ])
      assertFailure(await ask('http://h', '/x'), 40401)
    },

    'HTTP/1.0 is answered too, without a Host, and its connection closed':
      async client => {
        const post = client.asked('POST /plants')
        using wire = await client.open()
        const request = `${plantRequest(client, toJson({ id: ownId(), name: 'old' }))}`
        wire.send(request.replace('HTTP/1.1', 'HTTP/1.0').replace('host: h\r\n', ''))
        assertSuccess(await wire.answer(post), { name: 'old' })
        assert.equal((await wire.closed()).length, 0)
        const list = client.asked('GET /plants')
        using anonymous = await client.open()
        anonymous.send(bareRequest(list, [], 'HTTP/1.0'))
        assertFailure(await anonymous.answer(list), 40101)
        assert.equal((await anonymous.closed()).length, 0)
      },

    'an answer to Upgrade ends the connection: its body is no request': async client => {
      const id = ownId()
      const inner = plantRequest(client, toJson({ id, name: 'smuggled' }))
      const asked = client.asked('POST /plants')
      const fields = ['connection: upgrade', 'upgrade: h2c', 'expect: 100-continue']
      using wire = await client.open()
      wire.send(
        bareRequest(asked, [
          ...hostAndToken(client),
          'content-type: application/json',
          `content-length: ${inner.length}`,
          ...fields,
        ]),
      )
      assert.equal(await wire.interim(), 100)
      wire.send(inner)
      const answer = await wire.answer(asked)
      assert.equal(answer.headers.get('connection'), 'close')
      assert.equal(`${await wire.closed()}`, '')
      await assertAbsent(client, id)
    },

    'HTTP/1.0 with a transfer coding ends the connection (6.1)': async client => {
      const asked = client.asked('POST /plants')
      const id = ownId()
      const fields = ['connection: keep-alive', 'transfer-encoding: chunked']
      const request = `${plantRequest(client, chunk(toJson({ id, name: 'old' })) + chunk(''), fields)}`
      using wire = await client.open()
      wire.send(request.replace('HTTP/1.1', 'HTTP/1.0'))
      assert.equal((await wire.answer(asked)).headers.get('connection'), 'close')
      assert.equal(`${await wire.closed()}`, '')
    },

    'requests sent without waiting are answered one by one, in their order':
      async client => {
        const post = client.asked('POST /plants')
        const plants = Array.from({ length: 20 }, ownId).map(id => ({
          id,
          name: `${id}`,
        }))
        const requests = plants.flatMap(plant => [
          plantRequest(client, toJson(plant)),
          plantRequest(client, toJson({ ...plant, name: 5 })),
        ])
        using wire = await client.open()
        wire.send(Buffer.concat(requests))

        const outcomes: unknown[] = []
        for (const _ of requests) {
          const answer = jsonOf(await wire.answer(post)) as Partial<
            Record<string, unknown>
          >
          outcomes.push(answer['name'] ?? answer['error'])
        }
        const expected = plants.flatMap(({ name }) => [name, 40002n])
        assert.deepEqual(outcomes, expected)
        await assertAllKept(client, plants)
      },

    'a request that is refused before its broken body gets one answer': async client => {
      const asked = client.asked('POST /plants')
      using wire = await client.open()
      wire.send(
        bareRequest(asked, [
          'host: h',
          'content-type: application/json',
          'transfer-encoding: chunked',
        ]),
      )
      assertFailure(await wire.answer(asked), 40101)
      wire.send('zz\r\n')
      assert.equal(`${await wire.closed()}`, '')
    },
  }),
]
