import assert from 'node:assert/strict'
import { setTimeout } from 'node:timers/promises'
import { bareRequest, chunk, hostAndToken, plantRequest } from '../client.ts'
import {
  assertAbsent,
  assertFailure,
  assertKept,
  assertSuccess,
  type ContractCase,
  casesOf,
  create,
  ownId,
  toJson,
  words,
} from '../contract-case.ts'

/**
 * Each of another kind. ambiguous-ends.test.ts and check-order.test.ts of http have many
 * more.
 */
const notHttp = [
  'nonsense\r\n\r\n',
  '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003',
  'GET /healthz HTTP/1.1\r\nhost: h\r\nno colon\r\n\r\n',
  'GET /healthz HTTP/1.1\r\nhost: h\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n',
]

export const syntaxCases: readonly ContractCase[] = [
  ...casesOf('one shape for every failure', {
    'bytes that are no HTTP get 400 and the end of the connection': async client => {
      for (const bytes of notHttp) {
        using wire = await client.open()
        wire.send(Buffer.from(bytes, 'latin1'))
        const answer = await wire.answer(undefined)
        assertFailure(answer, 40000)
        assert.equal(answer.headers.get('connection'), 'close')
        assert.equal((await wire.closed()).length, 0)
      }
    },

    'a repeated field that identifies the sender or the body is refused':
      async client => {
        const id = ownId()
        const repeated = [
          { field: `authorization: Bearer ${client.store.tokens.full}`, error: 40102 },
          { field: 'content-type: application/json', error: 41501 },
          { field: 'content-encoding: identity\r\ncontent-encoding: gzip', error: 41502 },
        ]
        for (const { field, error } of repeated) {
          const answer = await client.postBare(toJson({ id, name: 'n' }), [field])

          assertFailure(answer, error)
        }
        await assertAbsent(client, id)
      },

    'a path that is not correctly percent-encoded gets 400': async client => {
      for (const path of words('/plants/% /plants/%zz /plants/%ff /%ed%a0%80')) {
        assertFailure(await client.ask('GET', path), 40006)
      }
    },
  }),

  ...casesOf('RFC 9110, 10.1.1', {
    'HTTP/1.0 knows no expectations: each is ignored': async client => {
      for (const expectation of ['100-continue', 'a miracle']) {
        const request = plantRequest(client, toJson({ id: ownId(), name: 'old' }), [
          `expect: ${expectation}`,
        ])
        const asked = client.asked('POST /plants')
        const answer = await client.exchange(
          asked,
          `${request}`.replace('HTTP/1.1', 'HTTP/1.0'),
        )
        assertSuccess(answer, { name: 'old' })
        assert.deepEqual(answer.interim, [])
      }
    },
  }),

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

    'an answer to a request with Upgrade is the last of its connection: its body is no request':
      async client => {
        const id = ownId()
        const inner = plantRequest(client, toJson({ id, name: 'smuggled' }))
        const fields = [
          'connection: upgrade',
          'upgrade: h2c',
          `content-length: ${inner.length}`,
        ]
        const asked = client.asked('POST /plants')
        using wire = await client.open()
        wire.send(
          bareRequest(asked, [
            ...hostAndToken(client),
            'content-type: application/json',
            ...fields,
          ]),
        )
        await setTimeout(50)
        wire.send(inner)
        const answer = await wire.answer(asked)
        assert.equal(answer.headers.get('connection'), 'close')
        assert.equal(`${await wire.closed()}`, '')
        await assertAbsent(client, id)
      },

    'an answer to HTTP/1.0 with a transfer coding is the last of its connection (6.1)':
      async client => {
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
        const plants = Array.from({ length: 20 }, ownId).map(id => ({
          id,
          name: `${id}`,
        }))
        const [create, read] = [
          client.asked('POST /plants'),
          client.asked('GET /healthz'),
        ]
        using wire = await client.open()
        const requests = plants.flatMap(plant => [
          plantRequest(client, toJson(plant)),
          Buffer.from(bareRequest(read, hostAndToken(client))),
          plantRequest(client, toJson({ ...plant, name: 5 })),
        ])
        wire.send(Buffer.concat(requests))
        for (const { name } of plants) {
          assertSuccess(await wire.answer(create), { name })
          assertSuccess(await wire.answer(read), { status: 'ok' })
          assertFailure(await wire.answer(create), 40002, 'name')
        }
        for (const plant of plants) {
          await assertKept(client, plant)
        }
      },

    'bytes that are no HTTP after a request do not take its answer away':
      async client => {
        for (const [garbage, error] of [
          ['nonsense\r\n\r\n', 40000],
          [
            `GET / HTTP/1.1\r\nx: ${'y'.repeat(client.store.headerBytesMax)}\r\n\r\n`,
            43101,
          ],
        ] as const) {
          const plants = [ownId(), ownId()].map(id => ({ id, name: `${id}` }))
          using wire = await client.open()
          wire.send(...plants.map(plant => plantRequest(client, toJson(plant))), garbage)
          for (const plant of plants) {
            assertSuccess(await wire.answer(client.asked('POST /plants')), {
              name: plant.name,
            })
            await assertKept(client, plant)
          }
          assertFailure(await wire.answer(undefined), error)
          assert.equal((await wire.closed()).length, 0)
        }
      },

    'one request gets one answer, also when it is refused before its broken body':
      async client => {
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
