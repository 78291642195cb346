import assert from 'node:assert/strict'
import { gzipSync } from 'node:zlib'
import { bareRequest, chunk, hostAndToken } from '../client.ts'
import {
  assertAbsent,
  assertFailure,
  assertSuccess,
  barred,
  type ContractCase,
  casesForEach,
  casesOf,
  create,
  ownId,
  toJson,
  words,
} from '../contract-case.ts'
import { aroundPaths } from './around-operation.ts'

const keptMeaning = 'the request around the plant'

const servicePaths = Object.fromEntries(
  words('/healthz /readyz /openapi.json /metrics').map(path => [path, ['GET']]),
)

const mediaTypes = [
  ...words(
    'text/plain text/json application/jsonx application/json5 application/problem+json application */*',
  ),
  ...barred(
    'application/x-www-form-urlencoded|multipart/form-data; boundary=x|application/json garbage|' +
      'application/json, text/plain|application/json; charset=iso-8859-1|application/json; charset=utf-16|' +
      'application/json;charset="latin1"|application/json; x="a;b"; charset=utf-16|' +
      'application/json; x="\\"; charset=utf-16',
  ),
]

/** All of them mean JSON in UTF-8. */
const jsonTypes = barred(
  'application/json|Application/JSON|application/json; charset=utf-8|application/json;charset=UTF-8|' +
    'application/json ; charset="utf-8"|application/json; profile=x|application/json; x="; charset=utf-16"|' +
    'application/json; x="\\"; charset=utf-16"; charset=utf-8|application/json; xcharset=utf-16|application/json;',
)

export const aroundRequestCases: readonly ContractCase[] = [
  ...aroundPaths(servicePaths),

  ...casesForEach(
    keptMeaning,
    mediaTypes,
    type => `the media type ${type} gets 415`,
    async (client, type) => {
      const id = ownId()
      const options = { body: toJson({ id, name: 'n' }), headers: { 'content-type': type } }
      assertFailure(await client.ask('POST', '/plants', options), 41501)
      assertFailure(await client.ask('PUT', `/plants/${id}`, options), 41501)
      await assertAbsent(client, id)
    },
  ),

  ...casesOf(keptMeaning, {
    'a body too large gets 413, also when its length is not told before': async client => {
      const body = `${'{"name":"'.padEnd(client.store.bodyBytesMax - 1, 'x')}"}`
      const fields = ['content-type: application/json', 'transfer-encoding: chunked']
      assertFailure(await client.askBare('PUT /plants/1', fields, `${chunk(body)}${chunk('')}`), 41301)
    },

    'a body without a media type gets 415': async client => {
      const body = toJson({ id: ownId(), name: 'n' })
      for (const type of [[], ['content-type:'], ['content-type: ']]) {
        const fields = [...type, `content-length: ${body.length}`]
        assertFailure(await client.askBare('POST /plants', fields, body), 41501)
      }
    },

    'application/json is taken in any case and with a charset that is UTF-8': async client => {
      for (const type of jsonTypes) {
        const options = { body: toJson({ id: ownId(), name: type }), headers: { 'content-type': type } }
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
        ['gzip', plain],
        ['GZIP', zipped],
        ['br', plain],
        ['deflate', plain],
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

    'only a body is judged: reading is not refused for a coding or a charset': async client => {
      const plant = { id: ownId(), name: 'n' }
      await create(client, plant)
      for (const [name, value] of [
        ['content-encoding', 'gzip'],
        ['content-type', 'application/json; charset=utf-16'],
        ['content-type', 'text/plain'],
        ['content-type', ''],
        ['content-range', 'bytes 0-1/2'],
      ] as const) {
        const headers = { [name]: value }
        assertSuccess(await client.ask('GET', `/plants/${plant.id}`, { headers }), plant)
        assertSuccess(await client.ask('GET', '/plants?tag=none%20such', { headers }), [])
        assert.equal((await client.ask('HEAD', `/plants/${plant.id}`, { headers })).status, 200)
      }
    },

    'a transfer coding other than chunked gets 415': async client => {
      const id = ownId()
      const chunks = `${chunk(toJson({ id, name: 'n' }))}${chunk('')}`
      for (const coding of ['gzip, chunked', 'deflate,chunked'])
        assertFailure(await client.postBare(chunks, [`transfer-encoding: ${coding}`]), 41502)
      await assertAbsent(client, id)
      assertSuccess(await client.postBare(chunks, ['Transfer-Encoding: Chunked']), { name: 'n' })
    },

    'a method that nobody has heard of is a failure in the one shape, and case counts': async client => {
      for (const method of ['BREW', 'get', 'Post', 'GETT'])
        assertFailure(await client.askBare(`${method} /plants`), 40000)
    },

    'CONNECT gets 405: this is no proxy': async client => {
      const asked = { method: 'CONNECT', target: 'example.com:443' }
      const fields = ['host: example.com:443', `authorization: Bearer ${client.store.tokens.full}`]
      const answer = await client.exchange(undefined, bareRequest(asked, fields))
      assertFailure(answer, 40501)
      assert.equal(answer.headers.has('allow'), true)
      assert.equal(answer.headers.get('connection'), 'close')
    },

    'a path that nothing is at gets 404': async client => {
      assertFailure(await client.ask('GET', '/Plants'), 40401)
      for (const target of ['*', 'plants']) {
        const asked = { method: 'OPTIONS', target: `/${target}` }
        const answer = await client.exchange(asked, bareRequest({ ...asked, target }, hostAndToken(client)))
        assert.ok(answer.status === 404 || answer.status === 400)
      }
    },
  }),
]
