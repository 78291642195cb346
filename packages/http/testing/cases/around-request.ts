import assert from 'node:assert/strict'
import { gzipSync } from 'node:zlib'
import { assertAbsent, assertFailure, assertSuccess, create } from '../assertions.ts'
import { type Client, chunk } from '../client.ts'
import { type ContractCase, casesForEach, casesOf, ownId } from '../contract-case.ts'
import { toJson } from '../exact-json.ts'
import { aroundPaths } from './around-operation.ts'

const servicePaths = {
  '/healthz': ['GET'],
  '/readyz': ['GET'],
  '/openapi.json': ['GET'],
  '/metrics': ['GET'],
}

const otherMediaTypes = [
  'text/plain',
  'application/jsonx',
  'application/problem+json',
  '*/*',
  'application/json garbage',
  'application/json, text/plain',
  'application/json; charset=iso-8859-1',
  'application/json;charset="latin1"',
  'application/json; x="a;b"; charset=utf-16',
  'application/json; x="\\"; charset=utf-16',
]

/** Media types that mean JSON in UTF-8. */
const jsonTypes = [
  'Application/JSON',
  'application/json;charset=UTF-8',
  'application/json ; charset="utf-8"',
  'application/json;charset=utf8',
  'application/json; x="; charset=utf-16"',
  'application/json; x="\\"; charset=utf-16"; charset=utf-8',
  'application/json; xcharset=utf-16',
  'application/json;',
]

/** Header fields that are wrong only for a body. */
const fieldsOfBodies: readonly (readonly [name: string, value: string])[] = [
  ['content-encoding', 'gzip'],
  ['content-type', 'application/json; charset=utf-16'],
  ['content-type', ''],
  ['content-range', 'bytes 0-1/2'],
]

const clause = 'the request around the plant'

async function createAny(client: Client) {
  const plant = { id: ownId(), name: 'n' }
  await create(client, plant)
  return plant
}

export const aroundRequestCases: readonly ContractCase[] = [
  ...aroundPaths(servicePaths),

  ...casesForEach(
    clause,
    otherMediaTypes,
    type => `another media type gets 415: ${type}`,
    async (client, type) => {
      const id = ownId()
      const body = toJson({ id, name: 'n' })
      const headers = { 'content-type': type }

      const created = await client.ask('POST', '/plants', { body, headers })
      const replaced = await client.ask('PUT', `/plants/${id}`, { body, headers })

      assertFailure(created, 41501)
      assertFailure(replaced, 41501)
      await assertAbsent(client, id)
    },
  ),

  ...casesForEach(
    clause,
    [[], ['content-type:'], ['content-type: ']],
    fields => `a body without a media type gets 415: ${JSON.stringify(fields)}`,
    async (client, fields) => {
      const body = toJson({ id: ownId(), name: 'n' })
      const allFields = [...fields, `content-length: ${body.length}`]

      const answer = await client.askBare('POST /plants', allFields, body)

      assertFailure(answer, 41501)
    },
  ),

  ...casesForEach(
    clause,
    jsonTypes,
    type => `application/json is taken in any form: ${type}`,
    async (client, type) => {
      const body = toJson({ id: ownId(), name: type })
      const headers = { 'content-type': type }

      const answer = await client.ask('POST', '/plants', { body, headers })

      assertSuccess(answer, { name: type })
    },
  ),

  ...casesForEach(
    clause,
    fieldsOfBodies,
    ([name, value]) => `reading is not refused for a field of a body: ${name}: ${value}`,
    async (client, [name, value]) => {
      const plant = await createAny(client)
      const headers = { [name]: value }

      const answer = await client.ask('GET', `/plants/${plant.id}`, { headers })

      assertSuccess(answer, plant)
    },
  ),

  ...casesForEach(
    clause,
    ['BREW', 'get', 'Post', 'GETT'],
    method => `an unknown method gets a failure in the one shape: ${method}`,
    async (client, method) => {
      const answer = await client.askBare(`${method} /plants`)

      assertFailure(answer, 40000)
    },
  ),

  ...casesOf(clause, {
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
      const body = chunk('x') + chunk('')
      const chunked = ['transfer-encoding: chunked']

      const removed = await client.askBare(`DELETE /plants/${ownId()}`, chunked, body)

      assertFailure(removed, 41501)
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
        assertFailure(answer, 41502, /coding/i)
        assert.equal(answer.headers.get('accept-encoding'), 'identity', coding)
      }
      await assertAbsent(client, id)
      assertSuccess(await postCoded('identity', plain), { name: 'n' })
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
  }),
]
