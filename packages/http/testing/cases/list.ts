import assert from 'node:assert/strict'
import {
  allPages,
  assertFailure,
  assertSuccess,
  create,
  follow,
  free,
  idsOf,
} from '../assertions.ts'
import type { Client } from '../client.ts'
import { type ContractCase, casesOf, ownId } from '../contract-case.ts'
import { jsonOf } from '../exact-json.ts'

/** Invalid values of the parameters of the list. */
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
  tag: ['%00'],
  name_contains: ['', 'a%00', 'x'.repeat(101)],
  count: ['', '1', 'yes', 'TRUE', 'true&name_contains=n'],
}

async function createAll(client: Client, ids: readonly bigint[], tag: string) {
  const plants = ids.map(id => ({ id, name: 'n', tag }))
  for (const plant of plants.toReversed()) {
    await create(client, plant)
  }
  return plants
}

export const listCases: readonly ContractCase[] = casesOf('GET /plants', {
  'returns 100 a page by default, in order of id, without counts': async client => {
    const ids = Array.from({ length: 101 }, ownId)
    const plants = await createAll(client, ids, 'a hundred and one')
    const path = '/plants?tag=a%20hundred%20and%20one'
    const first = await client.ask('GET', path)
    assertSuccess(first, plants.slice(0, 100))
    const whole = await client.ask('GET', `${path}&limit=101`)
    assertSuccess(whole, plants)
    assert.equal(whole.headers.has('link'), false)
    assert.deepEqual(jsonOf(await follow(client, first)), plants.slice(100))
    assert.doesNotMatch([...first.headers.keys()].join(' '), /count|total/)
  },

  'reaches each once by its links, also across zero': async client => {
    const ids = [-7_000_003n, -7_000_002n, -7_000_001n, -7n, 7_000_001n, 7_000_002n]
    await free(client, ids)
    await createAll(client, ids, 'each once')
    const pages = await allPages(client, '/plants?limit=2&tag=each%20once')
    const expected = [ids.slice(0, 2), ids.slice(2, 4), ids.slice(4)]
    assert.deepEqual(pages.map(idsOf), expected)
    // Without a tag the list has the plants of other cases too, but only these between
    // the two ids.
    const first = await client.ask('GET', '/plants?limit=2&after=-7000004')
    assert.deepEqual(idsOf(jsonOf(first)), ids.slice(0, 2))
    const next = await follow(client, first)
    assert.equal(idsOf(jsonOf(next))[0], -7_000_001n)
  },

  'refuses a query that has no valid value, naming each parameter': async client => {
    for (const [name, values] of Object.entries(wrongValues)) {
      for (const value of values) {
        const answer = await client.ask('GET', `/plants?${name}=${value}`)
        assertFailure(answer, 40005, name)
      }
    }
    const all = Object.entries(wrongValues).map(([name, [value]]) => `${name}=${value}`)
    const answer = await client.ask('GET', `/plants?${all.join('&')}`)
    assertFailure(answer, 40005, ...Object.keys(wrongValues))
  },

  'refuses a parameter that it does not have, with the names of its own':
    async client => {
      const names = Object.keys(wrongValues)
      for (const unknown of ['Limit=5', '__proto__=1', 'limt=5&limit=0', 'l%69mits=1']) {
        assertFailure(await client.ask('GET', `/plants?${unknown}`), 40012, ...names)
      }
    },

  'refuses a parameter that is given twice': async client => {
    for (const query of ['limit=1&l%69mit=2', 'after=1&after=', 'tag=a&t%61g=a']) {
      const [name = ''] = query.split('=')
      assertFailure(await client.ask('GET', `/plants?${query}`), 40009, name)
    }
  },
})
