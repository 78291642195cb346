import assert from 'node:assert/strict'
import type { Client } from '../client.ts'
import {
  allPages,
  assertAbsent,
  assertFailure,
  assertKept,
  assertSuccess,
  type ContractCase,
  casesForEach,
  casesOf,
  create,
  type Entity,
  free,
  ownId,
  toJson,
  words,
} from '../contract-case.ts'

const clauseOf = ({ path }: Entity) => `ids of ${path} are int64`
const idMin = -(2n ** 63n)
const idMax = 2n ** 63n - 1n

/** Ids at which a 53-bit, 32-bit or unsigned representation fails. No other case uses them. */
const edges = [
  ...[idMin, idMin + 1n, -(2n ** 53n) - 2n, -(2n ** 53n) - 1n, -(2n ** 53n), -(2n ** 31n) - 1n],
  ...[-100n, -9n, -1n, 0n, 9n, 100n],
  ...[2n ** 31n, 2n ** 32n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 53n + 1n, 2n ** 53n + 2n, idMax - 1n, idMax],
]

/** Digits as sent, and the id that they denote. */
const exact: readonly (readonly [digits: string, id: bigint])[] = [
  ['77.0', 77n],
  ['7.8e1', 78n],
  ['79E0', 79n],
  ['8e+1', 80n],
  ['810e-1', 81n],
  ['1e3', 1_000n],
  ['-1.5e1', -15n],
  ['-0', 0n],
  ['0.0', 0n],
  ['0e999999999999', 0n],
  ['9007199254740993.0', 9_007_199_254_740_993n],
  ['9.007199254740995e15', 9_007_199_254_740_995n],
  ['9223372036854775807.000', idMax],
  ['-9.223372036854775808e18', idMin],
  ['922337203685477580600000e-5', idMax - 1n],
]

/** JSON values that are not an int64. */
const refused = words(`
  11.5 11.00000000000000000001 1e-400 -1e-1 1e400 -1e400 1e99999999999999999999
  9223372036854775808 -9223372036854775809 9223372036854775807.5 18446744073709551616 1e19
  100000000000000000000000000000 true false null "12" "" [1] {"value":1}
`)

const notJson = words('+1 01 - 1. .5 0x10 1_000 1n NaN Infinity １')

const refusedInPaths = words(`
  x 1.5 0x1 +1 01 1e3 %201 9223372036854775808 -9223372036854775809 --1 %C3%A9 %F0%9F%8C%B1
`)

/** Returns the cases of ids of an entity. */
export function idCases(entity: Entity): readonly ContractCase[] {
  const { path } = entity
  const post = (client: Client, body: string) => client.ask('POST', path, { body })
  const bodyOf = (digits: string, text: string) =>
    toJson({ id: 0n, ...entity.members(text) }).replace('"id":0', `"id": ${digits}`)
  const clause = clauseOf(entity)
  return [
    ...casesOf(clause, {
      'creates, reads and refuses to repeat each edge exactly, and lists them in numeric order':
        async client => {
          const text = 'edges of int64'
          const items = edges.map(id => ({ id, ...entity.members(text) }))
          await free(client, edges, entity)
          // In neither numeric nor textual order.
          const backwards = (id: bigint) => `${id}`.split('').reverse()
          for (const item of items.toSorted((a, b) => (backwards(a.id) < backwards(b.id) ? -1 : 1)))
            await create(client, item, toJson(item), entity)
          for (const item of items) {
            const read = await client.ask('GET', `${path}/${item.id}`)
            assert.equal(`${read.body}`, toJson(item))
            const again = toJson({ ...item, ...entity.members('another') })
            assertFailure(await post(client, again), 40003, `${item.id}`.replace('-', ''))
          }
          assertSuccess(await client.ask('GET', `${path}?limit=1000&${entity.listOf(text)}`), items)
          const pages = await allPages(client, `${path}?limit=7&${entity.listOf(text)}`)
          assert.deepEqual(pages.flat(), items)
          await free(client, edges, entity)
        },

      'takes the neighbours of 2^53 for different ones': async client => {
        const neighbours = [-1n, 0n, 1n, 2n, 3n].map(offset => 2n ** 53n + offset)
        const itemOf = (id: bigint) => ({ id, ...entity.members(`${id}`) })
        await free(client, neighbours, entity)
        for (const id of neighbours) await create(client, itemOf(id), toJson(itemOf(id)), entity)
        for (const id of neighbours) await assertKept(client, itemOf(id), entity)
        const removed = 2n ** 53n + 1n
        await free(client, [removed], entity)
        await assertAbsent(client, removed, entity)
        for (const id of neighbours.filter(each => each !== removed))
          await assertKept(client, itemOf(id), entity)
        await free(client, neighbours, entity)
      },

      'refuses digits that JSON has no number for': async client => {
        for (const digits of notJson) assertFailure(await post(client, bodyOf(digits, 'no number')), 40001)
      },

      'takes an id in a path only as the digits of an int64': async client => {
        const item = { id: ownId(), ...entity.members('an id in a path') }
        await create(client, item, toJson(item), entity)
        const digits = `${item.id}`
        assertSuccess(await client.ask('GET', `${path}/%3${digits[0]}${digits.slice(1)}`), item)
        for (const id of [...refusedInPaths, `${digits}%00`, `${digits}%20`])
          for (const method of ['GET', 'DELETE'])
            assertFailure(await client.askBare(`${method} ${path}/${id}`), 40004, 'id')
      },
    }),

    ...casesForEach(
      clause,
      exact,
      ([digits, id]) => `takes ${digits} for ${id}`,
      async (client, [digits, id]) => {
        const members = entity.members('exact')
        await free(client, [id], entity)
        assertSuccess(await post(client, bodyOf(digits, 'exact')), members)
        const read = await client.ask('GET', `${path}/${id}`)
        assert.equal(`${read.body}`, toJson({ id, ...members }))
        await free(client, [id], entity)
      },
    ),

    ...casesForEach(
      clause,
      refused,
      value => `refuses ${value} as an id, rounding and coercing nothing`,
      async (client, value) => {
        const answer = await post(client, bodyOf(value, 'refused id'))
        assertFailure(answer, entity.errors.invalid, 'id')
        assertSuccess(await client.ask('GET', `${path}?${entity.listOf('refused id')}`), [])
      },
    ),
  ]
}
