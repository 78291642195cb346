import assert from 'node:assert/strict'
import type { Client } from '../client.ts'
import {
  allPages,
  assertFailure,
  assertSuccess,
  type ContractCase,
  casesOf,
  create,
  type Entity,
  follow,
  free,
  idsOf,
  jsonOf,
  ownId,
} from '../contract-case.ts'

/** Invalid values of the parameters of every list. */
const wrongValues = {
  limit: [
    '',
    '0',
    '-1',
    '1001',
    '1.5',
    '1e2',
    '%2B5',
    '05',
    '0x5',
    'x',
    '9999999999999999999999',
  ],
  after: ['', 'x', '1.5', '9223372036854775808', '-9223372036854775809', '00'],
}

/** Returns the cases of the list of an entity. */
export function listCases(entity: Entity): readonly ContractCase[] {
  return [...pageCases(entity), ...refusalCases(entity)]
}

function pageCases(entity: Entity): readonly ContractCase[] {
  const { path, members, listOf } = entity
  const createAll = async (client: Client, ids: readonly bigint[], text: string) => {
    const items = ids.map(id => ({ id, ...members(text) }))
    for (const item of items.toReversed()) {
      await create(client, item, undefined, entity)
    }
    return items
  }
  return casesOf(`GET ${path}`, {
    'returns 100 a page by default, in order of id, without counts': async client => {
      const text = 'a hundred and one'
      const items = await createAll(client, Array.from({ length: 101 }, ownId), text)
      const first = await client.ask('GET', `${path}?${listOf(text)}`)
      assertSuccess(first, items.slice(0, 100))
      const whole = await client.ask('GET', `${path}?limit=101&${listOf(text)}`)
      assertSuccess(whole, items)
      assert.equal(whole.headers.has('link'), false)
      assert.deepEqual(jsonOf(await follow(client, first, path)), items.slice(100))
      assert.doesNotMatch([...first.headers.keys()].join(' '), /count|total/)
    },

    'reaches each once by its links, also across zero': async client => {
      const ids = [
        -7_000_003n,
        -7_000_002n,
        -7_000_001n,
        -7n,
        7_000_001n,
        7_000_002n,
        7_000_003n,
      ]
      await free(client, ids, entity)
      await createAll(client, ids, 'each once')
      const pages = await allPages(client, `${path}?limit=2&${listOf('each once')}`)
      assert.deepEqual(pages.map(idsOf), [
        ids.slice(0, 2),
        ids.slice(2, 4),
        ids.slice(4, 6),
        ids.slice(6),
      ])
      // Without a filter the list has the items of other cases too, but only these
      // between the two ids.
      const first = await client.ask('GET', `${path}?limit=2&after=-7000004`)
      assert.deepEqual(idsOf(jsonOf(first)), ids.slice(0, 2))
      const next = await follow(client, first, path)
      assert.equal(idsOf(jsonOf(next))[0], -7_000_001n)
    },
  })
}

function refusalCases(entity: Entity): readonly ContractCase[] {
  const { path } = entity
  return casesOf(`GET ${path}`, {
    'refuses a query that has no valid value, naming each parameter': async client => {
      const wrong = { ...wrongValues, ...entity.wrongFilters }
      for (const [name, values] of Object.entries(wrong)) {
        for (const value of values) {
          assertFailure(await client.ask('GET', `${path}?${name}=${value}`), 40005, name)
        }
      }
      const all = Object.entries(wrong).map(([name, [value]]) => `${name}=${value}`)
      assertFailure(
        await client.ask('GET', `${path}?${all.join('&')}`),
        40005,
        ...Object.keys(wrong),
      )
    },

    'refuses a parameter that it does not have, with the names of its own':
      async client => {
        const names = ['limit', 'after', ...Object.keys(entity.wrongFilters)]
        for (const unknown of [
          'Limit=5',
          'x=1&x=2',
          '__proto__=1',
          'limt=5&limit=0',
          'l%69mits=1',
        ]) {
          assertFailure(await client.ask('GET', `${path}?${unknown}`), 40012, ...names)
        }
      },

    'refuses a parameter that is given twice': async client => {
      for (const [query, name] of [
        ['limit=1&limit=1', 'limit'],
        ['limit=1&l%69mit=2', 'limit'],
        ['after=1&after=', 'after'],
      ] as const) {
        assertFailure(await client.ask('GET', `${path}?${query}`), 40009, name)
      }
    },
  })
}
