import assert from 'node:assert/strict'
import { type Client, plantRequest } from '../client.ts'
import {
  assertAbsent,
  assertFailure,
  assertKept,
  assertSuccess,
  type ContractCase,
  casesOf,
  create,
  free,
  ownId,
  toJson,
} from '../contract-case.ts'
import type { Answer } from '../wire.ts'

const racers = 50
const rounds = 5

/** Header fields of a body that is missing. */
const fieldsWithoutBody: readonly (readonly string[])[] = [
  [],
  ['content-length: 0'],
  ['content-type: text/plain'],
  ['content-type: text/plain', 'content-length: 0'],
  ['content-type: application/json; charset=utf-16'],
  ['content-type:'],
  ['content-type: rubbish'],
  ['content-encoding: gzip'],
]

export const repeatedIdCases = casesOf('a repeated id is refused', {
  'even with the same body, and the plant stays as it was': async client => {
    const plant = { id: ownId(), name: 'first', tag: 'kept' }
    await create(client, plant)
    for (const again of [plant, { ...plant, name: 'second' }, { id: plant.id, name: '' }]) {
      assertFailure(await client.post(toJson(again)), 40003, `${plant.id}`)
      await assertKept(client, plant)
    }
    assertFailure(await client.post(`{"id":${plant.id}.0e0,"name":"second"}`), 40003)
  },

  [`of ${racers} clients racing for one id exactly one gets 200, and its plant is the one stored`]:
    async client => {
      const asked = client.asked('POST /plants')
      for (let round = 0; round < rounds; round++) {
        const id = ownId()
        const names = Array.from({ length: racers }, (_, n) => `racer ${n} of round ${round}`)
        const wires = await Promise.all(names.map(() => client.open()))
        const answers = await Promise.all(
          wires.map((wire, n) => {
            wire.send(plantRequest(client, toJson({ id, name: names[n] })))
            return wire.answer(asked)
          }),
        )
        for (const wire of wires) wire[Symbol.dispose]()

        const winners = names.filter((_, n) => answers[n]?.status === 200)
        assert.equal(winners.length, 1)
        for (const answer of answers) {
          if (answer.status === 200) assertSuccess(answer, { name: winners[0] })
          else assertFailure(answer, 40003)
        }
        await assertKept(client, { id, name: `${winners[0]}` })
      }
    },
})

export const operationCases: readonly ContractCase[] = [
  ...casesOf('GET /plants/{id}', {
    'answers 200 with id, name and tag, or 404': async client => {
      const plant = { id: ownId(), name: 'Monstera', tag: 'climber' }
      await create(client, plant)
      const read = await client.ask('GET', `/plants/${plant.id}`)
      assert.equal(`${read.body}`, `{"id":${plant.id},"name":"Monstera","tag":"climber"}`)
      await assertAbsent(client, ownId())
    },
  }),

  ...casesOf('PUT /plants/{id}', {
    'creates, replaces, and doing it twice is doing it once': async client => {
      const id = ownId()
      const first = await put(client, id, '{"name":"first","tag":"t"}')
      assert.equal(`${first.body}`, '{"name":"first","tag":"t"}')
      await assertKept(client, { id, name: 'first', tag: 't' })
      for (let n = 0; n < 2; n++) {
        assertSuccess(await put(client, id, '{"name":"second"}'), { name: 'second' })
        await assertKept(client, { id, name: 'second' })
      }
      assertFailure(await client.post(toJson({ id, name: 'third' })), 40003)
    },

    'refuses Content-Range: a part is not the plant (RFC 9110, 14.5)': async client => {
      const plant = { id: ownId(), name: 'whole', tag: 't' }
      await create(client, plant)
      for (const range of ['bytes 0-4/9', 'bytes */9', 'plants 1-2/3', '']) {
        const answer = await put(client, plant.id, '{"name":"part"}', { 'content-range': range })
        assertFailure(answer, 40010, 'Content-Range')
      }
      await assertKept(client, plant)
    },

    'takes an id in the body only when it is the one in the path': async client => {
      for (const id of [ownId(), 2n ** 53n + 1n, -(2n ** 63n)]) {
        const bodyOf = (given: string) => `{"id":${given},"name":"n"}`
        for (const other of [`${id + 1n}`, `"${id}"`, 'null', `${id}.5`])
          assertFailure(await put(client, id, bodyOf(other)), 40002, 'id')
        await assertAbsent(client, id)
        for (const same of [`${id}`, `${id}.0`])
          assertSuccess(await put(client, id, bodyOf(same)), { name: 'n' })
        await free(client, [id])
      }
    },

    'refuses what is no plant, and leaves the plant as it was': async client => {
      const plant = { id: ownId(), name: 'kept', tag: 't' }
      await create(client, plant)
      for (const [body, error, ...names] of [
        ['{}', 40002, 'name'],
        ['{"name":5,"tag":null}', 40002, 'name', 'tag'],
        ['[]', 40002],
        ['{"name":"a","name":"a"}', 40001],
        ['', 40001],
      ] as const)
        assertFailure(await put(client, plant.id, body), error, ...names)
      assertFailure(await put(client, 'x', '{"name":"n"}'), 40004)
      await assertKept(client, plant)
    },
  }),

  ...casesOf('DELETE /plants/{id}', {
    'answers 204 without a body, then 404, and frees the id': async client => {
      const id = ownId()
      await create(client, { id, name: 'first', tag: 'freed' })
      const removed = await client.ask('DELETE', `/plants/${id}`)
      assert.deepEqual([removed.status, removed.body.length], [204, 0])
      assert.equal(removed.headers.has('content-length'), false)
      assertFailure(await client.ask('DELETE', `/plants/${id}`), 40402)
      await assertAbsent(client, id)
      assertSuccess(await client.ask('GET', '/plants?tag=freed'), [])
      await create(client, { id, name: 'again' })
      await assertKept(client, { id, name: 'again' })
      assertFailure(await client.ask('DELETE', '/plants/1.5'), 40004)
    },

    'needs no media type without a body, whatever is said of the body that is not there': async client => {
      const id = ownId()
      for (const fields of fieldsWithoutBody) {
        await create(client, { id, name: 'n' })
        const { status } = await client.askBare(`DELETE /plants/${id}`, fields)
        assert.deepEqual([fields, status], [fields, 204])
      }
    },
  }),

  ...casesOf('HEAD is GET without the body', {
    'for a plant, a list, a page that is open, and failures': async client => {
      const id = ownId()
      await create(client, { id, name: 'n' })
      const failing = [`/plants/${ownId()}`, '/plants?limit=0', '/x']
      for (const path of [`/plants/${id}`, '/plants?limit=1', '/healthz', ...failing]) {
        const [head, get] = [await client.ask('HEAD', path), await client.ask('GET', path)]
        assert.equal(head.status, get.status)
        assert.equal(head.body.length, 0)
        for (const name of ['content-type', 'content-length', 'link'])
          assert.equal(head.headers.get(name), get.headers.get(name))
      }
    },
  }),
]

function put(
  client: Client,
  id: bigint | string,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  return client.ask('PUT', `/plants/${id}`, { body, headers })
}
