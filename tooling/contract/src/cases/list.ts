import assert from 'node:assert/strict'
import {
  allPages,
  assertFailure,
  assertSuccess,
  barred,
  type ContractCase,
  casesForEach,
  casesOf,
  create,
  follow,
  free,
  held,
  idsOf,
  ownId,
  type PlantSent,
  words,
} from '../contract-case.ts'

const list = 'GET /plants'

/** Tags with a meaning in a URL, a header field or a LIKE. */
const awkwardTags = [
  ...barred('two words|a&b=c|a+b|100%|%25|🌱 été|<>;,"\'\\|?#/..|a\r\nb\t|_|\u00a0 \u00a0|\u202e'),
  'x'.repeat(2_000),
]

/** Invalid values of the list's parameters. */
const wrongValues = {
  limit: ['', ...words('0 -1 1001 1.5 1e2 %2B5 05 0x5 x 9999999999999999999999')],
  after: ['', ...words('x 1.5 9223372036854775808 -9223372036854775809 00')],
  tag: ['%00'],
  name_contains: ['', 'a%00', 'x'.repeat(101)],
  count: ['', ...words('1 yes TRUE true&name_contains=n')],
}

export const listCases: readonly ContractCase[] = [
  ...casesOf(list, {
    'returns 100 plants a page by default, in order of id, without counts': async client => {
      const plants = plantsOf('a hundred and one', 101)
      for (const plant of plants.toReversed()) await create(client, plant)
      const first = await client.ask('GET', '/plants?tag=a%20hundred%20and%20one')
      assertSuccess(first, plants.slice(0, 100))
      const whole = await client.ask('GET', '/plants?limit=101&tag=a%20hundred%20and%20one')
      assertSuccess(whole, plants)
      assert.equal(whole.headers.has('link'), false)
      assert.deepEqual(held(await follow(client, first)), plants.slice(100))
      for (const { headers } of [first, whole])
        for (const name of headers.keys()) assert.doesNotMatch(name, /count|total/)
    },

    'reaches every plant once by its links, with positive and negative ids and whatever the limit':
      async client => {
        const ids = [-7_000_003n, -7_000_002n, -7_000_001n, -7n, 7_000_001n, 7_000_002n, 7_000_003n]
        await free(client, ids)
        for (const id of ids) await create(client, { id, name: 'n', tag: 'every plant once' })
        for (const limit of [1, 2, 3, 6, 7, 8]) {
          const pages = await allPages(client, `/plants?limit=${limit}&tag=every%20plant%20once`)
          assert.deepEqual(idsOf(pages.flat()), ids)
          assert.equal(pages.length, Math.ceil(ids.length / limit))
        }
        // Without a tag the list has the plants of other cases too, but only these between the two ids.
        const first = await client.ask('GET', '/plants?limit=2&after=-7000004')
        assert.deepEqual(idsOf(held(first)), ids.slice(0, 2))
        assert.equal(idsOf(held(await follow(client, first)))[0], -7_000_001n)
      },

    'links to a page only when a request can carry the link, and says so otherwise': async client => {
      const { headerBytesMax } = client.store
      const outcomes = { followed: 0, refused: 0 }
      const tryTag = async (tag: string, written: string) => {
        const plants = plantsOf(tag, 2)
        for (const plant of plants) await create(client, plant)
        const first = await client.ask('GET', `/plants?limit=1&tag=${written}`)
        if (first.status === 200) {
          assert.deepEqual(held(await follow(client, first)), plants.slice(1))
          outcomes.followed++
        } else {
          assertFailure(first, 43101)
          if (/next page/.test(`${first.body}`)) outcomes.refused++
        }
        await free(client, idsOf(plants))
      }
      for (let left = 1_400; left > 0; left -= 100) {
        const tag = 'x'.repeat(headerBytesMax - left)
        await tryTag(tag, tag)
      }
      assert.ok(outcomes.followed > 1 && outcomes.refused > 1, JSON.stringify(outcomes))
      // A space is one character in a form, and three in a link.
      outcomes.refused = 0
      await tryTag(' '.repeat(headerBytesMax / 2), '+'.repeat(headerBytesMax / 2))
      assert.equal(outcomes.refused, 1)
    },

    'distinguishes an empty tag from none': async client => {
      const [none, empty] = [ownId(), ownId()]
      await create(client, { id: none, name: 'n' })
      await create(client, { id: empty, name: 'n', tag: '' })
      const answer = await client.ask('GET', `/plants?limit=2&after=${none - 1n}`)
      assertSuccess(answer, [
        { id: none, name: 'n' },
        { id: empty, name: 'n', tag: '' },
      ])
      const tagged = idsOf(held(await client.ask('GET', `/plants?tag=&after=${none - 1n}`)))
      assert.ok(tagged.includes(empty))
      assert.ok(!tagged.includes(none))
    },

    'refuses a query that has no valid value, naming each parameter': async client => {
      for (const [name, values] of Object.entries(wrongValues))
        for (const value of values)
          assertFailure(await client.ask('GET', `/plants?${name}=${value}`), 40005, name)
      const allWrong = await client.ask('GET', '/plants?limit=0&after=x&tag=%00')
      assertFailure(allWrong, 40005, 'limit', 'after', 'tag')
      for (const limit of [1, 1000])
        assert.equal((await client.ask('GET', `/plants?limit=${limit}&tag=none%20such`)).status, 200)
    },

    'takes the ends of int64 for after': async client => {
      const [min, max] = [-(2n ** 63n), 2n ** 63n - 1n]
      assertSuccess(await client.ask('GET', `/plants?after=${max}`), [])
      await free(client, [min, max])
      for (const id of [min, max]) await create(client, { id, name: 'n', tag: 'ends' })
      for (const [after, ids] of [
        [min, [max]],
        [max - 1n, [max]],
        [max, []],
      ] as const)
        assert.deepEqual(idsOf(held(await client.ask('GET', `/plants?tag=ends&after=${after}`))), ids)
      await free(client, [min, max])
    },

    'refuses a parameter that it does not have, with the names of its own': async client => {
      for (const unknown of ['Limit=5', 'x=1&x=2', '__proto__=1', 'limt=5&limit=0', 't%61gs=1'])
        assertFailure(await client.ask('GET', `/plants?tag=none&${unknown}`), 40012, 'limit', 'after', 'tag')
    },

    'refuses a parameter that is given twice or wrongly encoded': async client => {
      for (const [query, name] of [
        ['limit=1&limit=1', 'limit'],
        ['limit=1&limit=2', 'limit'],
        ['after=1&after=', 'after'],
        ['tag=a&t%61g=a', 'tag'],
      ] as const)
        assertFailure(await client.ask('GET', `/plants?${query}`), 40009, name)
      for (const tag of ['%', '%4', '%zz', '%ff', '%c3', '%ed%a0%80', '%c0%af'])
        assertFailure(await client.ask('GET', `/plants?tag=${tag}`), 40006)
    },
  }),

  ...casesForEach(
    list,
    awkwardTags,
    tag => `narrows to the tag ${JSON.stringify(tag).slice(0, 30)}, and keeps to it from page to page`,
    async (client, tag) => {
      const plants = plantsOf(tag, 5)
      const others = [`${tag}x`, '', tag.slice(0, -1)].flatMap(other => plantsOf(other, 1))
      for (const plant of [...plants, ...others]) await create(client, plant)
      const pages = await allPages(client, `/plants?limit=2&tag=${encodeURIComponent(tag)}`)
      assert.deepEqual(pages, [plants.slice(0, 2), plants.slice(2, 4), plants.slice(4)])
      // As in a form and in URLSearchParams.
      assertSuccess(await client.ask('GET', `/plants?${new URLSearchParams({ tag })}`), plants)
      await free(client, idsOf(plants))
    },
  ),
]

function plantsOf(tag: string, length: number): readonly PlantSent[] {
  return Array.from({ length }, (_, n) => ({ id: ownId(), name: `${n}`, tag }))
}
