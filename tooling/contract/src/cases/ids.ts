import assert from 'node:assert/strict'
import {
  assertAbsent,
  assertFailure,
  assertSuccess,
  type ContractCase,
  create,
  free,
  ownId,
  toJson,
} from '../contract-case.ts'

const clause = 'Decision 1, ids are int64'
const idMin = -(2n ** 63n)
const idMax = 2n ** 63n - 1n

/** Where a 53-bit, 32-bit or unsigned representation goes wrong; none of them an id that other cases use. */
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

/** Digits as they are sent, and the id that they are. */
const exact: readonly (readonly [string, bigint])[] = [
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

const refused = [
  '11.5',
  '11.00000000000000000001',
  '1e-400',
  '-1e-1',
  '1e400',
  '-1e400',
  '1e99999999999999999999',
  '9223372036854775808',
  '-9223372036854775809',
  '9223372036854775807.5',
  '18446744073709551616',
  '1e19',
  '100000000000000000000000000000',
  'true',
  'false',
  'null',
  '"12"',
  '""',
  '[1]',
  '{"value":1}',
]

export const idCases: readonly ContractCase[] = [
  {
    clause,
    name: 'creates, reads and refuses to repeat each edge exactly, and lists them in numeric order',
    async run(client) {
      const tag = 'edges of int64'
      await free(client, edges)
      // In an order that is neither that of their numbers nor that of their digits.
      const shuffled = edges.toSorted((a, b) =>
        `${a}`.split('').reverse() < `${b}`.split('').reverse() ? -1 : 1,
      )
      for (const id of shuffled) await create(client, { id, name: `plant ${id}`, tag })
      for (const id of edges) {
        const read = await client.ask('GET', `/plants/${id}`)
        assert.equal(`${read.body}`, `{"id":${id},"name":"plant ${id}","tag":"${tag}"}`)
        const again = await client.ask('POST', '/plants', { body: toJson({ id, name: 'another' }) })
        assertFailure(again, 40003, `${id}`.replace('-', ''))
      }
      const list = await client.ask('GET', `/plants?limit=1000&tag=${encodeURIComponent(tag)}`)
      assertSuccess(
        list,
        edges.map(id => ({ id, name: `plant ${id}`, tag })),
      )
      await free(client, edges)
    },
  },
  {
    clause,
    name: 'takes the neighbours of 2^53 for different plants',
    async run(client) {
      const neighbours = [-1n, 0n, 1n, 2n, 3n].map(offset => 2n ** 53n + offset)
      await free(client, neighbours)
      for (const id of neighbours) await create(client, { id, name: `${id}` })
      for (const id of neighbours) {
        assertSuccess(await client.ask('GET', `/plants/${id}`), { id, name: `${id}` })
      }
      const removed = neighbours[2] as bigint
      await free(client, [removed])
      await assertAbsent(client, removed)
      for (const id of neighbours.filter(each => each !== removed)) {
        assertSuccess(await client.ask('GET', `/plants/${id}`), { id, name: `${id}` })
      }
      await free(client, neighbours)
    },
  },
  ...exact.map(
    ([digits, id]): ContractCase => ({
      clause,
      name: `takes ${digits} for ${id}`,
      async run(client) {
        await free(client, [id])
        const body = `{"id": ${digits}, "name": "exact"}`
        assertSuccess(await client.ask('POST', '/plants', { body }), { name: 'exact' })
        const read = await client.ask('GET', `/plants/${id}`)
        assert.equal(`${read.body}`, `{"id":${id},"name":"exact"}`)
        await free(client, [id])
      },
    }),
  ),
  ...refused.map(
    (digits): ContractCase => ({
      clause,
      name: `refuses ${digits} as an id, rounding and coercing nothing`,
      async run(client) {
        const body = `{"id":${digits},"name":"n","tag":"refused id"}`
        assertFailure(await client.ask('POST', '/plants', { body }), 40002, 'id')
        assertSuccess(await client.ask('GET', '/plants?tag=refused%20id'), [])
      },
    }),
  ),
  {
    clause,
    name: 'refuses digits that JSON has no number for',
    async run(client) {
      for (const digits of ['+1', '01', '-', '1.', '.5', '0x10', '1_000', '1n', 'NaN', 'Infinity', '１']) {
        const body = `{"id":${digits},"name":"n"}`
        assertFailure(await client.ask('POST', '/plants', { body }), 40001)
      }
    },
  },
  {
    clause,
    name: 'takes an id in a path only as the digits of an int64',
    async run(client) {
      const id = ownId()
      await create(client, { id, name: 'n' })
      assertSuccess(await client.ask('GET', `/plants/%3${`${id}`[0]}${`${id}`.slice(1)}`), { id, name: 'n' })
      const wrong = [
        'x',
        '1.5',
        '0x1',
        '+1',
        '01',
        '1e3',
        '%201',
        '9223372036854775808',
        '-9223372036854775809',
        '--1',
      ]
      for (const path of [...wrong, `${id}%00`, `${id}%20`, '%C3%A9', '%F0%9F%8C%B1']) {
        const target = client.target(`/plants/${path}`)
        const fields = ['host: h', `authorization: Bearer ${client.store.tokens.full}`]
        const request = Buffer.from(`GET ${target} HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n`)
        assertFailure(await client.exchange({ method: 'GET', target }, request), 40004, 'id')
      }
    },
  },
]
