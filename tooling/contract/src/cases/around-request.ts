import assert from 'node:assert/strict'
import { gzipSync } from 'node:zlib'
import { bareRequest, type Client, chunk, hostAndToken } from '../client.ts'
import {
  assertAbsent,
  assertFailure,
  assertSuccess,
  barred,
  type ContractCase,
  casesOf,
  create,
  ownId,
  toJson,
  words,
} from '../contract-case.ts'
import { aroundPaths } from './around-operation.ts'

const servicePaths = Object.fromEntries(
  words('/healthz /readyz /openapi.json /metrics').map(path => [path, ['GET']]),
)

const mediaTypes = barred(
  'text/plain|application/jsonx|application/problem+json|*/*|application/json garbage|' +
    'application/json, text/plain|application/json; charset=iso-8859-1|application/json;charset="latin1"|' +
    'application/json; x="a;b"; charset=utf-16|application/json; x="\\"; charset=utf-16',
)

/** All of them mean JSON in UTF-8. */
const jsonTypes = barred(
  'Application/JSON|application/json;charset=UTF-8|application/json ; charset="utf-8"|application/json;charset=utf8|' +
    'application/json; x="; charset=utf-16"|application/json; x="\\"; charset=utf-16"; charset=utf-8|' +
    'application/json; xcharset=utf-16|application/json;',
)

async function createAny(client: Client) {
  const plant = { id: ownId(), name: 'n' }
  await create(client, plant)
  return plant
}

export const aroundRequestCases: readonly ContractCase[] = [
  ...aroundPaths(servicePaths),

  ...casesOf('the request around the plant', {
    'another media type gets 415': async client => {
      const id = ownId()
      for (const type of mediaTypes) {
        const options = {
          body: toJson({ id, name: 'n' }),
          headers: { 'content-type': type },
        }
        assertFailure(await client.ask('POST', '/plants', options), 41501)
        assertFailure(await client.ask('PUT', `/plants/${id}`, options), 41501)
      }
      await assertAbsent(client, id)
    },

    'a body without a media type gets 415': async client => {
      const body = toJson({ id: ownId(), name: 'n' })
      for (const type of [[], ['content-type:'], ['content-type: ']]) {
        const fields = [...type, `content-length: ${body.length}`]
        assertFailure(await client.askBare('POST /plants', fields, body), 41501)
      }
    },

    'an empty body in chunks is no body, whatever its media type': async client => {
      const { id } = await createAny(client)
      const chunked = 'transfer-encoding: chunked'
      const types = [
        [],
        ['content-type: text/plain'],
        ['content-encoding: gzip'],
        ['content-type: application/json'],
      ]
      for (const type of types) {
        const created = await client.askBare(
          'POST /plants',
          [chunked, ...type],
          chunk(''),
        )
        assertFailure(created, 40001, 'no body')
      }

      const removed = await client.askBare(
        `DELETE /plants/${id}`,
        [chunked, 'content-type: text/plain'],
        chunk(''),
      )

      assert.equal(removed.status, 204, `${removed.body}`)
    },

    'a body in chunks of one byte is a body, and needs its media type': async client => {
      const { id } = await createAny(client)
      const body = chunk('x') + chunk('')

      const removed = await client.askBare(
        `DELETE /plants/${id}`,
        ['transfer-encoding: chunked'],
        body,
      )

      assertFailure(removed, 41501)
    },

    'application/json is taken in any case and with a charset that is UTF-8':
      async client => {
        for (const type of jsonTypes) {
          const options = {
            body: toJson({ id: ownId(), name: type }),
            headers: { 'content-type': type },
          }
          assertSuccess(await client.ask('POST', '/plants', options), { name: type })
        }
      },

    'a content coding gets 415, and the codings that are taken': async client => {
      const id = ownId()
      const plain = Buffer.from(toJson({ id, name: 'n' }))
      const zipped = gzipSync(plain)
      const postCoded = (coding: string, body: Buffer) =>
        client.ask('POST', '/plants', { body, headers: { 'content-encoding': coding } })
      for (const [coding, body] of [
        ['gzip', zipped],
        ['GZIP', zipped],
        ['identity, gzip', zipped],
        ['made-up', plain],
      ] as const) {
        const answer = await postCoded(coding, body)
        assertFailure(answer, 41502)
        assert.equal(answer.headers.get('accept-encoding'), 'identity')
      }
      await assertAbsent(client, id)
      assertSuccess(await postCoded('identity', plain), { name: 'n' })
    },

    'only a body is judged: reading is not refused for a coding or a charset':
      async client => {
        const plant = { id: ownId(), name: 'n' }
        await create(client, plant)
        for (const [name, value] of [
          ['content-encoding', 'gzip'],
          ['content-type', 'application/json; charset=utf-16'],
          ['content-type', ''],
          ['content-range', 'bytes 0-1/2'],
        ] as const) {
          const headers = { [name]: value }
          assertSuccess(
            await client.ask('GET', `/plants/${plant.id}`, { headers }),
            plant,
          )
        }
      },

    'a transfer coding other than chunked gets 415': async client => {
      const id = ownId()
      const chunks = `${chunk(toJson({ id, name: 'n' }))}${chunk('')}`
      assertFailure(
        await client.postBare(chunks, ['transfer-encoding: gzip, chunked']),
        41502,
      )
      await assertAbsent(client, id)
      assertSuccess(await client.postBare(chunks, ['Transfer-Encoding: Chunked']), {
        name: 'n',
      })
    },

    'a method that nobody has heard of is a failure in the one shape, and case counts':
      async client => {
        for (const method of ['BREW', 'get', 'Post', 'GETT']) {
          assertFailure(await client.askBare(`${method} /plants`), 40000)
        }
      },

    'CONNECT gets 405: this is no proxy': async client => {
      const asked = { method: 'CONNECT', target: 'example.com:443' }
      const fields = [
        'host: example.com:443',
        `authorization: Bearer ${client.store.tokens.full}`,
      ]
      const answer = await client.exchange(undefined, bareRequest(asked, fields))
      assertFailure(answer, 40501)
      assert.equal(answer.headers.has('allow'), true)
      assert.equal(answer.headers.get('connection'), 'close')
    },

    'a path that nothing is at gets 404': async client => {
      assertFailure(await client.ask('GET', '/Plants'), 40401)
      for (const target of ['*', 'plants']) {
        const asked = { method: 'OPTIONS', target: `/${target}` }
        const answer = await client.exchange(
          asked,
          bareRequest({ ...asked, target }, hostAndToken(client)),
        )
        assert.ok(answer.status === 404 || answer.status === 400)
      }
    },
  }),
]
