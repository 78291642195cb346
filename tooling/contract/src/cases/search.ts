import assert from 'node:assert/strict'
import type { Client } from '../client.ts'
import {
  allPages,
  assertSuccess,
  type ContractCase,
  casesForEach,
  casesOf,
  create,
  follow,
  held,
  idsOf,
  ownId,
  toJson,
} from '../contract-case.ts'

/** A text, a name that contains it, and one that does not. */
const parts = [
  ['DELICiosa', 'Monstera deliciosa', 'Monstera'],
  ['Ä', 'Älpler', 'älpler'],
  ['k', 'Knot', '\u212an'],
  ['100%', '100% sun', '100 sun'],
  ['a_b', 'A_B', 'axb'],
  ['\\', 'back\\slash', 'back/slash'],
  [`'"`, `it's '"`, `'x"`],
  ['\u00e9', 'caf\u00e9', 'cafe\u0301'],
  ['e\u0301', 'cafe\u0301', 'caf\u00e9'],
  ['🌱', 'a 🌱', 'a 🌳'],
  ['a+b&c', 'a+b&c', 'a b&c'],
] as const

export const searchCases: readonly ContractCase[] = [
  ...casesForEach(
    'GET /plants?name_contains=',
    parts,
    ([text]) => `finds ${text} in a name, with A to Z as a to z and all else exactly`,
    async (client, [text, name, other]) => {
      const tag = `part ${text}`
      const plant = { id: ownId(), name, tag }
      await create(client, plant)
      await create(client, { id: ownId(), name: other, tag })
      await create(client, { id: ownId(), name, tag: 'another part' })
      const query = new URLSearchParams({ tag, name_contains: text })
      assertSuccess(await client.ask('GET', `/plants?${query}`), [plant])
    },
  ),

  ...casesOf('a search and a count of many plants', {
    'the search goes on over empty pages by its links, and the count ends at 10,000': async client => {
      const tag = 'ten thousand'
      const ids = Array.from({ length: 10_001 }, ownId)
      const [found, last] = [ids[1_500], ids[10_000]]
      const name = (id: bigint) => (id === found || id === last ? 'Wanted' : 'n')
      await createMany(client, ids.slice(0, -1), { name, tag })
      const path = '/plants?tag=ten%20thousand&name_contains=wanted'
      const first = await client.ask('GET', path)
      assertSuccess(first, [])
      assert.match(first.headers.get('link') ?? 'none', /&name_contains=wanted/)
      assert.deepEqual(idsOf(held(await follow(client, first))), [found])
      assert.equal(await totalOf(client, '/plants?tag=ten%20thousand&count=true'), '10000')
      await createMany(client, ids.slice(-1), { name, tag })
      assert.deepEqual((await allPages(client, path)).flatMap(idsOf), [found, last])
      assert.equal(await totalOf(client, '/plants?tag=ten%20thousand&count=true'), '10000+')
    },

    'the count is of all pages, on HEAD too, and only if it is asked for': async client => {
      const tag = 'counted'
      const path = `/plants?tag=${tag}&limit=2`
      assert.equal(await totalOf(client, `${path}&count=true`), '0')
      const ids = [ownId(), ownId(), ownId()]
      for (const id of ids) await create(client, { id, name: 'n', tag })
      const first = await client.ask('GET', `${path}&count=true`)
      assert.deepEqual(idsOf(held(first)), ids.slice(0, 2))
      const next = await follow(client, first)
      for (const { headers } of [first, next]) assert.equal(headers.get('total-count'), '3')
      assert.equal(await totalOf(client, `${path}&count=true&after=${ids[2]}`), '3')
      assert.equal(await totalOf(client, `${path}&count=true`, 'HEAD'), '3')
      for (const without of [path, `${path}&count=false`]) assert.equal(await totalOf(client, without), null)
    },
  }),
]

async function createMany(
  client: Client,
  ids: readonly bigint[],
  { name, tag }: { name: (id: bigint) => string; tag: string },
) {
  const body = ids.map(id => toJson({ id, name: name(id), tag })).join('\n')
  const headers = { 'content-type': 'application/x-ndjson' }
  const { status } = await client.ask('POST', '/plants/batch', { body, headers })
  assert.equal(status, 200)
}

async function totalOf(client: Client, path: string, method = 'GET'): Promise<string | null> {
  const { status, headers } = await client.ask(method, path)
  assert.equal(status, 200)
  return headers.get('total-count') ?? null
}
