import assert from 'node:assert/strict'
import type { Client } from '../client.ts'
import {
  assertAbsent,
  assertFailure,
  assertKept,
  assertSuccess,
  type ContractCase,
  casesOf,
  changes,
  create,
  type Entity,
  free,
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

/** Returns the cases of the operations of an entity. */
export function operationCases(entity: Entity): readonly ContractCase[] {
  const { path, errors, members, required } = entity
  const creating = (client: Client, item: { readonly id: bigint }) =>
    create(client, item, undefined, entity)
  const post = (client: Client, item: object) =>
    client.ask('POST', path, { body: toJson(item) })
  const put = (
    client: Client,
    id: bigint | string,
    body: string,
    headers: Readonly<Record<string, string>> = {},
  ) => client.ask('PUT', `${path}/${id}`, { body, headers })

  const replacing = casesOf(`PUT ${path}/{id}`, {
    'creates, replaces, and doing it twice is doing it once': async client => {
      const id = ownId()
      const first = await put(client, id, toJson(members('first')))
      assert.equal(`${first.body}`, toJson(members('first')))
      await assertKept(client, { id, ...members('first') }, entity)
      for (let n = 0; n < 2; n++) {
        assertSuccess(
          await put(client, id, toJson(required('second'))),
          required('second'),
        )
        await assertKept(client, { id, ...required('second') }, entity)
      }
      assertFailure(await post(client, { id, ...members('third') }), 40003)
    },

    'refuses Content-Range: a part is not the whole (RFC 9110, 14.5)': async client => {
      const item = { id: ownId(), ...members('whole') }
      await creating(client, item)
      const answer = await put(client, item.id, toJson(members('part')), {
        'content-range': 'bytes 0-4/9',
      })
      assertFailure(answer, 40010, 'Content-Range')
      await assertKept(client, item, entity)
    },

    'takes an id in the body only when it is the one in the path': async client => {
      const id = 2n ** 53n + 1n
      const bodyOf = (given: string) =>
        toJson(members('n')).replace('{', `{"id":${given},`)
      await free(client, [id], entity)
      for (const other of [`${id + 1n}`, `"${id}"`, 'null']) {
        assertFailure(await put(client, id, bodyOf(other)), errors.invalid, 'id')
      }
      await assertAbsent(client, id, entity)
      assertSuccess(await put(client, id, bodyOf(`${id}.0`)), members('n'))
      await free(client, [id], entity)
    },

    'refuses what breaks a rule, and leaves what was there': async client => {
      const item = { id: ownId(), ...members('kept') }
      await creating(client, item)
      for (const [body, error] of [
        ['{}', errors.invalid],
        ['[]', errors.invalid],
        ['{"a":1,"a":1}', 40001],
        ['', 40001],
      ] as const) {
        assertFailure(await put(client, item.id, body), error)
      }
      assertFailure(await put(client, 'x', toJson(members('n'))), 40004)
      await assertKept(client, item, entity)
    },
  })

  return [
    ...casesOf(`POST ${path}`, {
      [`of ${racers} clients racing for one id gives exactly one 200, and stores what that one sent`]:
        async client => {
          const id = ownId()
          const texts = Array.from({ length: racers }, (_, n) => `racer ${n}`)
          const answers = await Promise.all(
            texts.map(text => post(client, { id, ...members(text) })),
          )
          const winner = answers.findIndex(({ status }) => status === 200)
          const won = members(`${texts[winner]}`)
          for (const [n, answer] of answers.entries()) {
            if (n === winner) {
              assertSuccess(answer, won)
            } else {
              assertFailure(answer, 40003, `${id}`)
            }
          }
          await assertKept(client, { id, ...won }, entity)
        },
    }),

    ...(changes(entity, 'PUT') ? replacing : []),

    ...casesOf(`DELETE ${path}/{id}`, {
      'answers 204 without a body, then 404, and frees the id': async client => {
        const id = ownId()
        await creating(client, { id, ...members('freed') })
        const removed = await client.ask('DELETE', `${path}/${id}`)
        assert.deepEqual([removed.status, removed.body.length], [204, 0])
        assert.equal(removed.headers.has('content-length'), false)
        assertFailure(await client.ask('DELETE', `${path}/${id}`), errors.missing)
        await assertAbsent(client, id, entity)
        assertSuccess(await client.ask('GET', `${path}?${entity.listOf('freed')}`), [])
        await creating(client, { id, ...members('again') })
        await assertKept(client, { id, ...members('again') }, entity)
        assertFailure(await client.ask('DELETE', `${path}/1.5`), 40004)
      },

      'needs no media type without a body, whatever is said of the body that is not there':
        async client => {
          const id = ownId()
          for (const fields of fieldsWithoutBody) {
            await creating(client, { id, ...members('n') })
            const { status } = await client.askBare(`DELETE ${path}/${id}`, fields)
            assert.deepEqual([fields, status], [fields, 204])
          }
        },
    }),

    ...casesOf(`HEAD of ${path} is GET without the body`, {
      'for one, for a list, and for failures': async client => {
        const id = ownId()
        await creating(client, { id, ...members('n') })
        for (const target of [
          `${path}/${id}`,
          `${path}?limit=1`,
          `${path}/${ownId()}`,
          `${path}?limit=0`,
        ]) {
          const [head, get] = [
            await client.ask('HEAD', target),
            await client.ask('GET', target),
          ]
          assert.equal(head.status, get.status)
          assert.equal(head.body.length, 0)
          for (const name of ['content-type', 'content-length', 'link']) {
            assert.equal(head.headers.get(name), get.headers.get(name))
          }
        }
      },
    }),
  ]
}
