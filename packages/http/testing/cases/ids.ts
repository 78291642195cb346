import assert from 'node:assert/strict'
import type { Client } from '../client.ts'
import {
  assertFailure,
  assertSuccess,
  type ContractCase,
  casesOf,
  create,
  type Entity,
  free,
  ownId,
  toJson,
  words,
} from '../contract-case.ts'

const idMin = -(2n ** 63n)
const idMax = 2n ** 63n - 1n

/**
 * Ids at which a 53-bit, 32-bit or unsigned representation fails. No other case uses
 * them.
 */
const edges = [
  idMin,
  idMin + 1n,
  -(2n ** 53n) - 2n,
  -(2n ** 53n) - 1n,
  -(2n ** 53n),
  -(2n ** 31n) - 1n,
  -100n,
  -9n,
  -1n,
  0n,
  9n,
  100n,
  2n ** 31n,
  2n ** 32n,
  2n ** 53n - 1n,
  2n ** 53n,
  2n ** 53n + 1n,
  2n ** 53n + 2n,
  idMax - 1n,
  idMax,
]

/** Digits as sent, and the id that they denote. */
const exact: readonly (readonly [digits: string, id: bigint])[] = [
  ['7.8e1', 78n],
  ['-0', 0n],
  ['9007199254740993.0', 9_007_199_254_740_993n],
  ['-9.223372036854775808e18', idMin],
  ['922337203685477580600000e-5', idMax - 1n],
]

/** JSON values that are not an int64. */
const refused = words(
  '11.5 1e-400 1e400 9223372036854775808 -9223372036854775809 true null "12" [1] {}',
)

const refusedInPaths = words(`
  x 1.5 0x1 +1 01 1e3 %201 9223372036854775808 -9223372036854775809 --1 %C3%A9 %F0%9F%8C%B1
`)

/** Returns the cases of ids of an entity. */
export function idCases(entity: Entity): readonly ContractCase[] {
  const { path } = entity
  const post = (client: Client, body: string) => client.ask('POST', path, { body })
  const bodyOf = (digits: string, text: string) =>
    toJson({ id: 0n, ...entity.members(text) }).replace('"id":0', `"id": ${digits}`)
  return casesOf(`ids of ${path} are int64`, {
    'each edge is kept exactly, cannot be repeated, and is listed in order':
      async client => {
        const text = 'edges of int64'
        const items = edges.map(id => ({ id, ...entity.members(text) }))
        await free(client, edges, entity)
        // The order of creation is neither numeric nor textual.
        const backwards = (id: bigint) => `${id}`.split('').reverse()
        for (const item of items.toSorted((a, b) =>
          backwards(a.id) < backwards(b.id) ? -1 : 1,
        )) {
          await create(client, item, toJson(item), entity)
        }
        for (const item of items) {
          const read = await client.ask('GET', `${path}/${item.id}`)
          assert.equal(`${read.body}`, toJson(item), `GET of ${item.id}`)
          const again = toJson({ ...item, ...entity.members('another') })
          assertFailure(await post(client, again), 40003, `${item.id}`.replace('-', ''))
        }
        assertSuccess(
          await client.ask('GET', `${path}?limit=1000&${entity.listOf(text)}`),
          items,
        )
        await free(client, edges, entity)
      },

    'takes any notation of a number for the id that it denotes': async client => {
      for (const [digits, id] of exact) {
        await free(client, [id], entity)
        const created = await post(client, bodyOf(digits, 'exact'))
        const read = await client.ask('GET', `${path}/${id}`)
        assert.equal(created.status, 200, `${digits}: ${created.body}`)
        assert.equal(
          `${read.body}`,
          toJson({ id, ...entity.members('exact') }),
          `the item that was created as ${digits}`,
        )
        await free(client, [id], entity)
      }
    },

    'refuses what is no int64, rounding and coercing nothing': async client => {
      for (const value of refused) {
        assertFailure(
          await post(client, bodyOf(value, 'refused id')),
          entity.errors.invalid,
          'id',
        )
      }
      const list = await client.ask('GET', `${path}?${entity.listOf('refused id')}`)
      assertSuccess(list, [])
    },

    'takes an id in a path only as the digits of an int64': async client => {
      const item = { id: ownId(), ...entity.members('an id in a path') }
      await create(client, item, toJson(item), entity)
      const digits = `${item.id}`
      assertSuccess(
        await client.ask('GET', `${path}/%3${digits[0]}${digits.slice(1)}`),
        item,
      )
      for (const id of [...refusedInPaths, `${digits}%00`, `${digits}%20`]) {
        for (const method of ['GET', 'DELETE']) {
          assertFailure(await client.askBare(`${method} ${path}/${id}`), 40004, 'id')
        }
      }
    },
  })
}
