import assert from 'node:assert/strict'
import { allPages, assertSuccess, create, follow, idsOf } from '../assertions.ts'
import type { Client } from '../client.ts'
import { type ContractCase, casesOf, ownId } from '../contract-case.ts'
import { jsonOf, toJson } from '../exact-json.ts'
import { postLines } from './batch.ts'

export const searchCases: readonly ContractCase[] = [
  ...casesOf('GET /plants?name_contains=', {
    'finds a text of any characters in a name, with A to Z as a to z': async client => {
      const tag = 'parts of names'
      const name = `A 100%_\\'"+&=#? caf\u00e9 🌱`
      const plant = { id: ownId(), name, tag }
      await create(client, plant)
      const decomposed = name.replace('\u00e9', 'e\u0301')
      await create(client, { id: ownId(), name: decomposed, tag })
      await create(client, { id: ownId(), name, tag: 'another part' })
      const query = new URLSearchParams({
        tag,
        name_contains: name.toUpperCase().replace('\u00c9', '\u00e9'),
      })
      assertSuccess(await client.ask('GET', `/plants?${query}`), [plant])
    },
  }),

  ...casesOf('a search and a count of many plants', {
    'a search goes on over empty pages, and a count ends at 10,000': async client => {
      const tag = 'ten thousand'
      const ids = Array.from({ length: 10_001 }, ownId)
      const [found, last] = [ids[1_500], ids[10_000]]
      const lines = ids.map(id =>
        toJson({ id, name: id === found || id === last ? 'Wanted' : 'n', tag }),
      )
      assert.equal((await postLines(client, lines.slice(0, -1).join('\n'))).status, 200)
      const path = '/plants?tag=ten%20thousand&name_contains=wanted'
      const first = await client.ask('GET', path)
      assertSuccess(first, [])
      assert.match(first.headers.get('link') ?? 'none', /&name_contains=wanted/)
      assert.deepEqual(idsOf(jsonOf(await follow(client, first))), [found])
      assert.equal(
        await totalOf(client, '/plants?tag=ten%20thousand&count=true'),
        '10000',
      )
      assert.equal((await postLines(client, lines.slice(-1).join('\n'))).status, 200)
      assert.deepEqual((await allPages(client, path)).flatMap(idsOf), [found, last])
      assert.equal(
        await totalOf(client, '/plants?tag=ten%20thousand&count=true'),
        '10000+',
      )
    },

    'the count is of all pages, on HEAD too, and only if it is asked for':
      async client => {
        const tag = 'counted'
        const path = `/plants?tag=${tag}&limit=2`
        assert.equal(await totalOf(client, `${path}&count=true`), '0')
        const ids = [ownId(), ownId(), ownId()]
        for (const id of ids) {
          await create(client, { id, name: 'n', tag })
        }
        const first = await client.ask('GET', `${path}&count=true`)
        assert.deepEqual(idsOf(jsonOf(first)), ids.slice(0, 2))
        const next = await follow(client, first)
        assert.equal(first.headers.get('total-count'), '3')
        assert.equal(next.headers.get('total-count'), '3')
        assert.equal(await totalOf(client, `${path}&count=true&after=${ids[2]}`), '3')
        assert.equal(await totalOf(client, `${path}&count=true`, 'HEAD'), '3')
        assert.equal(await totalOf(client, path), null)
        assert.equal(await totalOf(client, `${path}&count=false`), null)
      },
  }),
]

async function totalOf(
  client: Client,
  path: string,
  method = 'GET',
): Promise<string | null> {
  const { status, headers } = await client.ask(method, path)
  assert.equal(status, 200)
  return headers.get('total-count') ?? null
}
