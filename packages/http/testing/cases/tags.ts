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
import {
  type ContractCase,
  casesForEach,
  casesOf,
  ownId,
  type PlantSent,
} from '../contract-case.ts'
import { jsonOf } from '../exact-json.ts'

const clause = 'GET /plants of a tag'

/** The promises of the list of one tag. */
export const tagCases: readonly ContractCase[] = [
  ...casesForEach(
    clause,
    ['%', '%4', '%zz', '%ff', '%c3', '%ed%a0%80', '%c0%af'],
    tag => `refuses a wrong encoding: ${tag}`,
    async (client, tag) => {
      const answer = await client.ask('GET', `/plants?tag=${tag}`)

      assertFailure(answer, 40006)
    },
  ),

  ...casesOf(clause, {
    'links to a page only when a request can carry the link': async client => {
      const { headerBytesMax } = client.store
      const outcomes = { followed: 0, refused: 0 }
      const tryTag = async (tag: string) => {
        const plants = plantsOf(tag, 2)
        for (const plant of plants) {
          await create(client, plant)
        }
        const first = await client.ask('GET', `/plants?limit=1&tag=${tag}`)
        if (first.status === 200) {
          assert.deepEqual(jsonOf(await follow(client, first)), plants.slice(1))
          outcomes.followed++
        } else {
          assertFailure(first, 43101)
          if (/next page/.test(`${first.body}`)) {
            outcomes.refused++
          }
        }
        await free(client, idsOf(plants))
      }
      for (let left = 1_400; left > 0; left -= 100) {
        await tryTag('x'.repeat(headerBytesMax - left))
      }
      assert.ok(outcomes.followed > 1 && outcomes.refused > 1, JSON.stringify(outcomes))
    },

    'distinguishes an empty tag from none': async client => {
      const [none, empty] = [ownId(), ownId()]
      await create(client, { id: none, name: 'n' })
      await create(client, { id: empty, name: 'n', tag: '' })
      const answer = await client.ask('GET', `/plants?tag=&limit=1&after=${none - 1n}`)
      assertSuccess(answer, [{ id: empty, name: 'n', tag: '' }])
    },

    'narrows to a tag of any characters, and keeps to it from page to page':
      async client => {
        // With a meaning in a URL, a header field or a LIKE.
        const tag = `a&b=c+d 100%25_<>;,"'\\|?#/..\r\n\u00a0🌱 été\u202e`
        const plants = plantsOf(tag, 5)
        const others = [`${tag}x`, '', tag.slice(0, -1)].flatMap(other =>
          plantsOf(other, 1),
        )
        for (const plant of [...plants, ...others]) {
          await create(client, plant)
        }
        const pages = await allPages(
          client,
          `/plants?limit=2&tag=${encodeURIComponent(tag)}`,
        )
        const expected = [plants.slice(0, 2), plants.slice(2, 4), plants.slice(4)]
        assert.deepEqual(pages, expected)
        // A form and URLSearchParams encode a space as a plus sign.
        assertSuccess(
          await client.ask('GET', `/plants?${new URLSearchParams({ tag })}`),
          plants,
        )
      },
  }),
]

function plantsOf(tag: string, length: number): readonly PlantSent[] {
  return Array.from({ length }, (_, n) => ({ id: ownId(), name: `${n}`, tag }))
}
