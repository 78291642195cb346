import assert from 'node:assert/strict'
import { assertFailure, assertSuccess, create, free } from '../assertions.ts'
import { type ContractCase, casesOf, ownId, words } from '../contract-case.ts'
import { toJson } from '../exact-json.ts'

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
  x - 1.5 1.0 0x1 +1 01 -0 1e3 %201 9223372036854775808 -9223372036854775809 --1 %C3%A9 %F0%9F%8C%B1
`)

const bodyOf = (digits: string, tag: string) =>
  `{"id":${digits},"name":"n","tag":"${tag}"}`

export const idCases: readonly ContractCase[] = casesOf('ids are int64', {
  'each edge is kept exactly, cannot be repeated, and is listed in order':
    async client => {
      const plants = edges.map(id => ({ id, name: 'n', tag: 'edges' }))
      await free(client, edges)
      // The order of creation is neither numeric nor textual.
      const backwards = (id: bigint) => `${id}`.split('').reverse()
      for (const plant of plants.toSorted((a, b) =>
        backwards(a.id) < backwards(b.id) ? -1 : 1,
      )) {
        await create(client, plant)
      }
      for (const plant of plants) {
        const read = await client.ask('GET', `/plants/${plant.id}`)
        assert.equal(`${read.body}`, toJson(plant), `GET of ${plant.id}`)
        const again = await client.post(toJson({ ...plant, name: 'another' }))
        assertFailure(again, 40003, `${plant.id}`.replace('-', ''))
      }
      assertSuccess(await client.ask('GET', '/plants?limit=1000&tag=edges'), plants)
      await free(client, edges)
    },

  'takes any notation of a number for the id that it denotes': async client => {
    for (const [digits, id] of exact) {
      await free(client, [id])
      const created = await client.post(bodyOf(digits, 'exact'))
      const read = await client.ask('GET', `/plants/${id}`)
      assert.equal(created.status, 200, `${digits}: ${created.body}`)
      assert.equal(`${read.body}`, bodyOf(`${id}`, 'exact'), `created as ${digits}`)
      await free(client, [id])
    }
  },

  'refuses what is no int64, rounding and coercing nothing': async client => {
    for (const value of refused) {
      assertFailure(await client.post(bodyOf(value, 'refused id')), 40002, 'id')
    }
    assertSuccess(await client.ask('GET', '/plants?tag=refused%20id'), [])
  },

  'takes an id in a path only as the digits of an int64': async client => {
    const plant = { id: ownId(), name: 'n' }
    await create(client, plant)
    const digits = `${plant.id}`
    const encoded = `%3${digits[0]}${digits.slice(1)}`
    assertSuccess(await client.ask('GET', `/plants/${encoded}`), plant)
    const long = digits.repeat(200)
    for (const id of [...refusedInPaths, `${digits}%00`, `${digits}%20`, long]) {
      for (const method of ['GET', 'DELETE']) {
        assertFailure(await client.askBare(`${method} /plants/${id}`), 40004, 'id')
      }
    }
  },
})
