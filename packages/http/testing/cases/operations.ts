import assert from 'node:assert/strict'
import {
  assertAbsent,
  assertFailure,
  assertKept,
  assertSuccess,
  create,
  free,
} from '../assertions.ts'
import { type ContractCase, casesForEach, casesOf, ownId } from '../contract-case.ts'
import { toJson } from '../exact-json.ts'

const racers = 50

/** Header fields of a body that is missing. */
const fieldsWithoutBody: readonly (readonly string[])[] = [
  [],
  ['content-type: text/plain', 'content-length: 0'],
  ['content-type:'],
  ['content-type: rubbish'],
  ['content-encoding: gzip'],
]

/** Bodies that break a rule, and their failures. */
const wrongBodies: readonly (readonly [body: string, error: number])[] = [
  ['{}', 40002],
  ['[]', 40002],
  ['{"a":1,"a":1}', 40001],
  ['', 40001],
]

/** The plant of HEAD. */
const headId = ownId()
const headTargets = [
  `/plants/${headId}`,
  '/plants?limit=1',
  '/plants/2',
  '/plants?limit=0',
]

/** The promises of each operation, besides what its values are. */
export const operationCases: readonly ContractCase[] = [
  ...casesOf(`POST /plants by ${racers} clients racing for one id`, {
    'gives exactly one 200, and stores what that one sent': async client => {
      const id = ownId()
      const plants = Array.from({ length: racers }, (_, n) => ({
        id,
        name: `racer ${n}`,
      }))

      const answers = await Promise.all(plants.map(plant => client.post(toJson(plant))))

      const winner = answers.findIndex(({ status }) => status === 200)
      for (const loser of answers.toSpliced(winner, 1)) {
        assertFailure(loser, 40003, `${id}`)
      }
      await assertKept(client, plants[winner] ?? assert.fail('nobody has won'))
    },
  }),

  ...casesOf('PUT /plants/{id}', {
    'creates, replaces, and doing it twice is doing it once': async client => {
      const id = ownId()
      const put = (body: string) => client.ask('PUT', `/plants/${id}`, { body })

      const first = await put('{"name":"first","tag":"t"}')
      assertSuccess(first, { name: 'first', tag: 't' }, 201)
      await assertKept(client, { id, name: 'first', tag: 't' })

      const tagged = await put('{"name":"tagged","tag":"u"}')
      assertSuccess(tagged, { name: 'tagged', tag: 'u' })
      const second = await put('{"name":"second"}')
      const again = await put('{"name":"second"}')
      assertSuccess(second, { name: 'second' })
      assertSuccess(again, { name: 'second' })
      await assertKept(client, { id, name: 'second' })
      assertFailure(await client.post(toJson({ id, name: 'third' })), 40003)
    },

    'gives 201 to exactly one of many that race to create': async client => {
      const id = ownId()
      const put = (_: unknown, n: number) =>
        client.ask('PUT', `/plants/${id}`, { body: `{"name":"racer ${n}"}` })

      const answers = await Promise.all(Array.from({ length: racers }, put))

      const statuses = answers.map(({ status }) => status).toSorted()
      assert.deepEqual(statuses, [...Array(racers - 1).fill(200), 201])
    },

    'refuses Content-Range: a part is not the whole (RFC 9110, 14.5)': async client => {
      const plant = { id: ownId(), name: 'whole' }
      await create(client, plant)

      const answer = await client.ask('PUT', `/plants/${plant.id}`, {
        body: '{"name":"part"}',
        headers: { 'content-range': 'bytes 0-4/9' },
      })

      assertFailure(answer, 40010, 'Content-Range')
      await assertKept(client, plant)
    },

    'takes an id in the body only when it is the one in the path': async client => {
      const id = 2n ** 53n + 1n
      const put = (digits: string) =>
        client.ask('PUT', `/plants/${id}`, { body: `{"id":${digits},"name":"n"}` })
      await free(client, [id])

      for (const other of [`${id + 1n}`, `"${id}"`, 'null']) {
        assertFailure(await put(other), 40002, 'id')
      }
      await assertAbsent(client, id)

      assertSuccess(await put(`${id}.0`), { name: 'n' }, 201)
      await free(client, [id])
    },
  }),

  ...casesForEach(
    'PUT /plants/{id}',
    wrongBodies,
    ([body]) => `refuses a wrong body, and leaves what was there: "${body}"`,
    async (client, [body, error]) => {
      const plant = { id: ownId(), name: 'kept' }
      await create(client, plant)

      const answer = await client.ask('PUT', `/plants/${plant.id}`, { body })

      assertFailure(answer, error)
      await assertKept(client, plant)
    },
  ),

  ...casesOf('DELETE /plants/{id}', {
    'answers 204 without a body, then 404, and frees the id': async client => {
      const id = ownId()
      await create(client, { id, name: 'n', tag: 'freed' })

      const removed = await client.ask('DELETE', `/plants/${id}`)
      const removedAgain = await client.ask('DELETE', `/plants/${id}`)

      assert.deepEqual([removed.status, removed.body.length], [204, 0])
      assert.equal(removed.headers.has('content-length'), false)
      assertFailure(removedAgain, 40402)
      await assertAbsent(client, id)
      assertSuccess(await client.ask('GET', '/plants?tag=freed'), [])
      await create(client, { id, name: 'again' })
      await assertKept(client, { id, name: 'again' })
    },

    'refuses an id that is no integer': async client => {
      assertFailure(await client.ask('DELETE', '/plants/1.5'), 40004)
    },
  }),

  ...casesForEach(
    'DELETE /plants/{id}',
    fieldsWithoutBody,
    fields => `needs no media type without a body: ${JSON.stringify(fields)}`,
    async (client, fields) => {
      const id = ownId()
      await create(client, { id, name: 'n' })

      const removed = await client.askBare(`DELETE /plants/${id}`, fields)

      assert.equal(removed.status, 204, `${removed.body}`)
    },
  ),

  ...casesForEach(
    'HEAD is GET without the body',
    headTargets,
    target => target,
    async (client, target) => {
      await free(client, [headId])
      await create(client, { id: headId, name: 'n' })

      const head = await client.ask('HEAD', target)
      const get = await client.ask('GET', target)

      assert.deepEqual([head.status, head.body.length], [get.status, 0])
      for (const name of ['content-type', 'content-length', 'link']) {
        assert.equal(head.headers.get(name), get.headers.get(name), name)
      }
    },
  ),
]
