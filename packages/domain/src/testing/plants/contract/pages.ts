import assert from 'node:assert/strict'
import type { Plant } from '../../../plants/plant.ts'
import { type PlantPageQuery, parsePlantListQuery } from '../../../plants/query.ts'
import { int64Max, int64Min, textBytes } from '../../../values.ts'
import { texts } from '../../samples.ts'
import type { PlantRepositoryCase } from '../contract.ts'
import { pageOf } from '../memory.ts'
import { fullPlant, idsOf, plant, plantId } from '../samples.ts'
import { firstIds, pageIds, tagOf } from './stored.ts'

/** About sizes at which an adapter might end a page or a list of parameters. */
const manyLimits = [100, 129, 1_000, 1_001, 1_099, 1_100, 1_101]

/** Promises of lists. */
export const pages: Readonly<Record<string, PlantRepositoryCase['run']>> = {
  async 'pages by limit and after, with open and closed ends'(repository) {
    for (let id = -5n; id < 5n; id++) {
      await repository.insert(plant(id))
    }
    const page = (limit: number, after: bigint) =>
      pageIds(repository, { limit, after: plantId(after) })

    const first = await pageIds(repository, { limit: 3 })
    assert.deepEqual(first, [-5n, -4n, -3n])
    assert.deepEqual(await page(3, -3n), [-2n, -1n, 0n])
    assert.deepEqual(await page(3, 3n), [4n])
    assert.deepEqual(await page(100, 4n), [])
    assert.deepEqual(await page(100, int64Max), [])
    assert.deepEqual(await page(2, int64Min), [-5n, -4n])
  },
  async 'ends a page with the plant at which its texts reach the bound'(repository) {
    const plants = ['', 'a', 'é', '日', '🌱'].flatMap((text, index) => {
      const id = 2n * BigInt(index)
      return [plant(id, text), fullPlant(id + 1n, text)]
    })
    let allBytes = 0
    for (const each of plants) {
      await repository.insert(each)
      allBytes += textBytes(each)
    }

    for (let textBytesMax = 1; textBytesMax <= allBytes + 1; textBytesMax++) {
      const ids = idsOf(pageOf(plants, { limit: 10, textBytesMax }))
      const page = await pageIds(repository, { limit: 10, textBytesMax })
      assert.deepEqual(page, ids, `${textBytesMax} bytes`)
      const short = await pageIds(repository, { limit: 2, textBytesMax })
      assert.deepEqual(short, ids.slice(0, 2), `2 plants, ${textBytesMax} bytes`)
    }
  },
  'returns as many as requested of all plants': returnsAsManyAsRequested({}, id =>
    plant(id),
  ),
  'returns as many as requested of a tag': returnsAsManyAsRequested(
    { tag: tagOf('a') },
    id => plant(id, 'p', 'a'),
  ),
  'filters by an exact tag, page by page': filtersBy('even', [
    'odd',
    'Even',
    'eve',
    'even ',
    '',
    undefined,
  ]),
  'filters by an empty tag, page by page': filtersBy('', [undefined, ' ']),
  async 'filters by any text as a tag'(repository) {
    const plants = texts.map((tag, index) => plant(BigInt(index), 'p', tag))
    for (const each of plants) {
      await repository.insert(each)
    }

    for (const [index, tag] of texts.entries()) {
      const page = await repository.page({ limit: 100, tag: tagOf(tag) })
      assert.deepEqual(page, [plants[index]], `the tag of ${index}`)
    }
  },
  async 'counts the whole list beside a page, up to a number'(repository) {
    const total = async (input: ListInput, countMax = 100) => {
      const query = parsePlantListQuery(input)
      const counted = await repository.pageCounted({ ...query, countMax })
      const plants = await repository.page(query)
      assert.deepEqual(counted.plants, plants, `the page of ${writeInput(input)}`)
      return counted.total
    }
    assert.equal(await total({}), 0)
    assert.equal(await total({ after: 1n }), 0)
    for (let id = 0n; id < 12n; id++) {
      await repository.insert(plant(id, 'p', id < 5n ? 'low' : 'high'))
    }

    assert.equal(await total({ limit: 1 }), 12)
    assert.equal(await total({ limit: 3, after: 9n }), 12)
    assert.equal(await total({ after: 11n }), 12, 'beside an empty page')
    assert.equal(await total({ after: int64Max }), 12, 'after the greatest id')
    assert.equal(await total({ tag: 'low', limit: 1 }), 5)
    assert.equal(await total({ tag: 'low', after: 7n }), 5)
    assert.equal(await total({ tag: 'none' }), 0)
    assert.equal(await total({}, 1), 1)
    assert.equal(await total({}, 11), 11)
    assert.equal(await total({}, 12), 12)
    assert.equal(await total({}, 13), 12)
    assert.equal(await total({ tag: 'high' }, 6), 6)
  },
  async 'ends a counted page with the plant at which its texts reach a bound'(
    repository,
  ) {
    for (const id of firstIds(3)) {
      await repository.insert(plant(id, 'four'))
    }

    const bounds = { limit: 100, textBytesMax: 4, countMax: 100 }
    const { plants, total } = await repository.pageCounted(bounds)
    assert.deepEqual(plants, [plant(0n, 'four')])
    assert.equal(total, 3)
  },
}

type ListInput = Parameters<typeof parsePlantListQuery>[0]

function writeInput(input: ListInput): string {
  const members = Object.entries(input).map(([name, value]) => `${name}=${value}`)
  return members.join('&') || 'all plants'
}

function returnsAsManyAsRequested(
  filter: Pick<PlantPageQuery, 'tag'>,
  listed: (id: bigint) => Plant,
): PlantRepositoryCase['run'] {
  return async repository => {
    const ids = firstIds(1_100)
    await Promise.all(ids.map(id => repository.insert(listed(id))))

    for (const limit of manyLimits) {
      const page = await pageIds(repository, { limit, ...filter })
      assert.deepEqual(page, ids.slice(0, limit), `limit ${limit}`)
    }
  }
}

/** @param otherTags tags that the filter must not find */
function filtersBy(
  tag: string,
  otherTags: readonly (string | undefined)[],
): PlantRepositoryCase['run'] {
  return async repository => {
    const ids = [0n, 10n, 20n, 30n]
    for (const id of ids) {
      await repository.insert(plant(id, 'p', tag))
      let otherId = id
      for (const other of otherTags) {
        otherId++
        await repository.insert(plant(otherId, 'p', other))
      }
    }
    const page = (bounds: Partial<PlantPageQuery>) =>
      pageIds(repository, { ...bounds, tag: tagOf(tag) })
    const oneByte = textBytes(plant(0n, 'p', tag)) + 1

    assert.deepEqual(await page({}), ids)
    assert.deepEqual(await page({ limit: 1, after: plantId(10n) }), [20n])
    assert.deepEqual(await page({ after: plantId(30n) }), [])
    assert.deepEqual(await page({ textBytesMax: oneByte }), [0n, 10n])
    await repository.remove(plantId(10n))
    assert.deepEqual(await page({}), [0n, 20n, 30n])
  }
}
