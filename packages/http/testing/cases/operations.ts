import assert from 'node:assert/strict'
import type { Client } from '../client.ts'
import {
  assertAbsent,
  assertFailure,
  assertKept,
  assertSuccess,
  type ContractCase,
  casesForEach,
  casesOf,
  changes,
  create,
  type Entity,
  free,
  type ItemSent,
  ownId,
  toJson,
} from '../contract-case.ts'

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
const wrongBodies = ({ errors }: Entity): readonly (readonly [string, number])[] => [
  ['{}', errors.invalid],
  ['[]', errors.invalid],
  ['{"a":1,"a":1}', 40001],
  ['', 40001],
]

/** Returns the cases of the operations of an entity. */
export function operationCases(entity: Entity): readonly ContractCase[] {
  return [
    ...creationCases(entity),
    ...(changes(entity, 'PUT') ? replacementCases(entity) : []),
    ...removalCases(entity),
    ...headCases(entity),
  ]
}

const createItem = (client: Client, item: ItemSent, entity: Entity) =>
  create(client, item, undefined, entity)

function creationCases(entity: Entity): readonly ContractCase[] {
  const { path, members } = entity
  const clause = `POST ${path} by ${racers} clients racing for one id`

  return casesOf(clause, {
    'gives exactly one 200, and stores what that one sent': async client => {
      const id = ownId()
      const texts = Array.from({ length: racers }, (_, n) => `racer ${n}`)

      const answers = await Promise.all(
        texts.map(text => {
          const body = toJson({ id, ...members(text) })
          return client.ask('POST', path, { body })
        }),
      )

      const winner = answers.findIndex(({ status }) => status === 200)
      const won = members(`${texts[winner]}`)
      assertSuccess(answers[winner] ?? assert.fail('nobody has won'), won)
      for (const loser of answers.toSpliced(winner, 1)) {
        assertFailure(loser, 40003, `${id}`)
      }
      await assertKept(client, { id, ...won }, entity)
    },
  })
}

function replacementCases(entity: Entity): readonly ContractCase[] {
  const { path, errors, members, required } = entity
  const clause = `PUT ${path}/{id}`
  const put = (
    client: Client,
    id: bigint | string,
    body: string,
    headers: Readonly<Record<string, string>> = {},
  ) => client.ask('PUT', `${path}/${id}`, { body, headers })

  return [
    ...casesOf(clause, {
      'creates, replaces, and doing it twice is doing it once': async client => {
        const id = ownId()

        const first = await put(client, id, toJson(members('first')))
        assert.equal(`${first.body}`, toJson(members('first')))
        await assertKept(client, { id, ...members('first') }, entity)

        const second = await put(client, id, toJson(required('second')))
        const again = await put(client, id, toJson(required('second')))
        assertSuccess(second, required('second'))
        assertSuccess(again, required('second'))
        await assertKept(client, { id, ...required('second') }, entity)

        const body = toJson({ id, ...members('third') })
        assertFailure(await client.ask('POST', path, { body }), 40003)
      },

      'refuses Content-Range: a part is not the whole (RFC 9110, 14.5)': async client => {
        const item = { id: ownId(), ...members('whole') }
        await createItem(client, item, entity)

        const answer = await put(client, item.id, toJson(members('part')), {
          'content-range': 'bytes 0-4/9',
        })

        assertFailure(answer, 40010, 'Content-Range')
        await assertKept(client, item, entity)
      },

      'takes an id in the body only when it is the one in the path': async client => {
        const id = 2n ** 53n + 1n
        const bodyWith = (digits: string) =>
          toJson(members('n')).replace('{', `{"id":${digits},`)
        await free(client, [id], entity)

        for (const other of [`${id + 1n}`, `"${id}"`, 'null']) {
          const refused = await put(client, id, bodyWith(other))
          assertFailure(refused, errors.invalid, 'id')
        }
        await assertAbsent(client, id, entity)

        assertSuccess(await put(client, id, bodyWith(`${id}.0`)), members('n'))
        await free(client, [id], entity)
      },

      'refuses an id in the path that is no integer': async client => {
        assertFailure(await put(client, 'x', toJson(members('n'))), 40004)
      },
    }),

    ...casesForEach(
      clause,
      wrongBodies(entity),
      ([body]) => `refuses a wrong body, and leaves what was there: "${body}"`,
      async (client, [body, error]) => {
        const item = { id: ownId(), ...members('kept') }
        await createItem(client, item, entity)

        const answer = await put(client, item.id, body)

        assertFailure(answer, error)
        await assertKept(client, item, entity)
      },
    ),
  ]
}

function removalCases(entity: Entity): readonly ContractCase[] {
  const { path, errors, members } = entity
  const clause = `DELETE ${path}/{id}`

  return [
    ...casesOf(clause, {
      'answers 204 without a body, then 404, and frees the id': async client => {
        const id = ownId()
        await createItem(client, { id, ...members('freed') }, entity)

        const removed = await client.ask('DELETE', `${path}/${id}`)
        const removedAgain = await client.ask('DELETE', `${path}/${id}`)

        assert.equal(removed.status, 204)
        assert.equal(removed.body.length, 0)
        assert.equal(removed.headers.has('content-length'), false)
        assertFailure(removedAgain, errors.missing)
        await assertAbsent(client, id, entity)
        const list = await client.ask('GET', `${path}?${entity.listOf('freed')}`)
        assertSuccess(list, [])

        const item = { id, ...members('again') }
        await createItem(client, item, entity)
        await assertKept(client, item, entity)
      },

      'refuses an id that is no integer': async client => {
        assertFailure(await client.ask('DELETE', `${path}/1.5`), 40004)
      },
    }),

    ...casesForEach(
      clause,
      fieldsWithoutBody,
      fields => `needs no media type without a body: ${JSON.stringify(fields)}`,
      async (client, fields) => {
        const id = ownId()
        await createItem(client, { id, ...members('n') }, entity)

        const removed = await client.askBare(`DELETE ${path}/${id}`, fields)

        assert.equal(removed.status, 204, `${removed.body}`)
      },
    ),
  ]
}

/** Returns the cases of HEAD, which are named by their targets, as a client could ask. */
function headCases(entity: Entity): readonly ContractCase[] {
  const { path, members } = entity
  const id = ownId()
  const targets = [`${path}/${id}`, `${path}?limit=1`, `${path}/2`, `${path}?limit=0`]

  return casesForEach(
    `HEAD of ${path} is GET without the body`,
    targets,
    target => target,
    async (client, target) => {
      await free(client, [id], entity)
      await createItem(client, { id, ...members('n') }, entity)

      const head = await client.ask('HEAD', target)
      const get = await client.ask('GET', target)

      assert.equal(head.status, get.status)
      assert.equal(head.body.length, 0)
      for (const name of ['content-type', 'content-length', 'link']) {
        assert.equal(head.headers.get(name), get.headers.get(name), name)
      }
    },
  )
}
