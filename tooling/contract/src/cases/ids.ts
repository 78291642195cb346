import assert from 'node:assert/strict'
import {
  assertAbsent,
  assertFailure,
  assertKept,
  assertSuccess,
  type ContractCase,
  casesForEach,
  casesOf,
  create,
  free,
  ownId,
  toJson,
  words,
} from '../contract-case.ts'

const clause = 'ids are int64'
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

export const idCases: readonly ContractCase[] = [
  ...casesOf(clause, {
    'creates, reads and refuses to repeat each edge exactly, and lists them in numeric order':
      async client => {
        const tag = 'edges of int64'
        const plants = edges.map(id => ({ id, name: `plant ${id}`, tag }))
        await free(client, edges)
        // In neither numeric nor textual order.
        const backwards = (id: bigint) => `${id}`.split('').reverse()
        for (const plant of plants.toSorted((a, b) => (backwards(a.id) < backwards(b.id) ? -1 : 1)))
          await create(client, plant)
        for (const { id, name } of plants) {
          const read = await client.ask('GET', `/plants/${id}`)
          assert.equal(`${read.body}`, `{"id":${id},"name":"${name}","tag":"${tag}"}`)
          const again = await client.post(toJson({ id, name: 'another' }))
          assertFailure(again, 40003, `${id}`.replace('-', ''))
        }
        const list = await client.ask('GET', `/plants?limit=1000&tag=${encodeURIComponent(tag)}`)
        assertSuccess(list, plants)
        await free(client, edges)
      },

    'takes the neighbours of 2^53 for different plants': async client => {
      const neighbours = [-1n, 0n, 1n, 2n, 3n].map(offset => 2n ** 53n + offset)
      await free(client, neighbours)
      for (const id of neighbours) await create(client, { id, name: `${id}` })
      for (const id of neighbours) await assertKept(client, { id, name: `${id}` })
      const removed = 2n ** 53n + 1n
      await free(client, [removed])
      await assertAbsent(client, removed)
      for (const id of neighbours.filter(each => each !== removed))
        await assertKept(client, { id, name: `${id}` })
      await free(client, neighbours)
    },

    'refuses digits that JSON has no number for': async client => {
      for (const digits of notJson) assertFailure(await client.post(`{"id":${digits},"name":"n"}`), 40001)
    },

    'takes an id in a path only as the digits of an int64': async client => {
      const id = ownId()
      await create(client, { id, name: 'n' })
      assertSuccess(await client.ask('GET', `/plants/%3${`${id}`[0]}${`${id}`.slice(1)}`), { id, name: 'n' })
      for (const path of [...refusedInPaths, `${id}%00`, `${id}%20`])
        assertFailure(await client.askBare(`GET /plants/${path}`), 40004, 'id')
    },
  }),

  ...casesForEach(
    clause,
    exact,
    ([digits, id]) => `takes ${digits} for ${id}`,
    async (client, [digits, id]) => {
      await free(client, [id])
      assertSuccess(await client.post(`{"id": ${digits}, "name": "exact"}`), { name: 'exact' })
      const read = await client.ask('GET', `/plants/${id}`)
      assert.equal(`${read.body}`, `{"id":${id},"name":"exact"}`)
      await free(client, [id])
    },
  ),

  ...casesForEach(
    clause,
    refused,
    value => `refuses ${value} as an id, rounding and coercing nothing`,
    async (client, value) => {
      assertFailure(await client.post(`{"id":${value},"name":"n","tag":"refused id"}`), 40002, 'id')
      assertSuccess(await client.ask('GET', '/plants?tag=refused%20id'), [])
    },
  ),
]
