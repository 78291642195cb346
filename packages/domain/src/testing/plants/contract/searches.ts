import assert from 'node:assert/strict'
import type { PlantId } from '../../../plants/plant.ts'
import { type PlantSearch, parsePlantListQuery } from '../../../plants/query.ts'
import type { PlantRepository } from '../../../plants/repository.ts'
import type { UnicodeText } from '../../../values.ts'
import type { PlantRepositoryCase } from '../contract.ts'
import { idsOf, plant, plantId } from '../samples.ts'
import { firstIds, tagOf } from './stored.ts'

/** Texts, each with the names among all names here that contain it. */
const namesByText: Readonly<Record<string, readonly string[]>> = {
  deLICiosa: ['Monstera deliciosa', 'DELICIOSA', 'xdeliciosax'],
  Ä: ['Ä', 'xÄx'],
  ä: ['ä'],
  м: ['клм'],
  М: ['КЛМ'],
  'i\u0307': ['i\u0307'],
  '\u0130': ['\u0130'],
  k9: ['k9', 'K9'],
  '\u212a9': ['\u212a9'],
  '100%': ['100% sun'],
  '100 s': ['100 sun'],
  a_b: ['a_b', 'A_B'],
  'a-b': ['a-b'],
  '\\': ['back\\slash', '\\%'],
  [`'"`]: [`quotes '"`],
  '\u0301': ['e\u0301'],
  '\u00e9': ['\u00e9'],
  '🌱': ['🌱', 'x🌱\u{1f468}'],
  ' \t\n': ['white \t\n space'],
  'none such': [],
}

/** Promises of searches by a part of the name. */
export const searches: Readonly<Record<string, PlantRepositoryCase['run']>> = {
  async 'finds a part of a name, with A to Z as a to z and all else exactly'(repository) {
    const names = Object.values(namesByText).flat()
    for (const [id, name] of names.entries()) {
      await repository.insert(plant(BigInt(id), name, 'none such'))
    }

    for (const [text, matching] of Object.entries(namesByText)) {
      const { plants, next } = await repository.search(searchFor(text))
      const matches = plants.map(({ name }) => name)
      assert.deepEqual(matches, matching, `names with ${text}`)
      assert.equal(next, undefined, `the next page of ${text}`)
    }
  },
  async 'looks at a bounded number of plants, and goes on where it stopped'(repository) {
    assert.deepEqual(await repository.search(searchFor('a')), { plants: [] })
    const matching = [-3n, 0n, 1n, 8n]
    for (let id = -4n; id < 10n; id++) {
      const name = matching.includes(id) ? 'A' : 'b'
      await repository.insert(plant(id, name))
    }

    for (let lookAtMax = 1; lookAtMax <= 15; lookAtMax++) {
      const pages = await pagesOf(repository, searchFor('a', { lookAtMax }))
      assert.deepEqual(pages.flat(), matching, `looking at ${lookAtMax}`)
      assert.equal(pages.length, Math.ceil(13 / lookAtMax), `looking at ${lookAtMax}`)
    }
    const byThree = await pagesOf(repository, searchFor('a', { lookAtMax: 3 }))
    assert.deepEqual(byThree.map(String), ['-3', '0,1', '', '', '8'])
  },
  async 'ends a page of a search at its limit and at the size of its texts'(repository) {
    for (let id = -2n; id < 6n; id++) {
      await repository.insert(plant(id, id % 2n === 0n ? 'even' : 'odd'))
    }

    const byLimit = await pagesOf(repository, searchFor('e', { limit: 2 }))
    assert.deepEqual(byLimit, [
      [-2n, 0n],
      [2n, 4n],
    ])
    const bySize = await pagesOf(repository, searchFor('e', { textBytesMax: 5 }))
    assert.deepEqual(bySize, [
      [-2n, 0n],
      [2n, 4n],
    ])
  },
  async 'searches the plants of a tag'(repository) {
    for (const id of firstIds(12)) {
      const name = id % 3n === 0n ? 'third' : 'other'
      await repository.insert(plant(id, name, id % 2n === 0n ? 'even' : 'odd'))
    }
    const tag = tagOf('even')

    for (const lookAtMax of [1, 2, 3, 6, 7]) {
      const pages = await pagesOf(repository, searchFor('THIRD', { tag, lookAtMax }))
      assert.deepEqual(pages.flat(), [0n, 6n], `looking at ${lookAtMax}`)
    }
    const byTwo = await pagesOf(repository, searchFor('third', { tag, lookAtMax: 2 }))
    assert.deepEqual(byTwo, [[0n], [6n]])
  },
  async 'searches long names and beside long tags'(repository) {
    const long = 'x'.repeat(70_000)
    for (const id of [0n, 1n, 2n, 3n]) {
      await repository.insert(plant(id, `${long}${id}${long}`))
    }
    for (const id of [4n, 5n, 6n, 7n]) {
      await repository.insert(plant(id, `${id}`, long))
    }
    const idsFor = async (text: string) => {
      const search = searchFor(text, { textBytesMax: 10_000 })
      return (await pagesOf(repository, search)).flat()
    }

    assert.deepEqual(await idsFor('x2X'), [2n])
    assert.deepEqual(await idsFor('5'), [5n])
    assert.deepEqual(await idsFor('x'), [0n, 1n, 2n, 3n])
  },
  async 'goes on with a search whatever was removed and created in between'(repository) {
    for (const id of firstIds(8)) {
      await repository.insert(plant(id))
    }
    const { next } = await repository.search(searchFor('plant', { lookAtMax: 3 }))
    assert.equal(next, 2n)
    for (const id of [0n, 2n, 4n]) {
      await repository.remove(plantId(id))
    }
    await repository.insertAll([plant(-1n), plant(9n)])

    const rest = searchFor('plant', { after: plantId(2n), lookAtMax: 2 })
    const pages = await pagesOf(repository, rest)
    assert.deepEqual(pages.flat(), [3n, 5n, 6n, 7n, 9n])
  },
}

function searchFor(text: string, more: Partial<PlantSearch> = {}): PlantSearch {
  const all = parsePlantListQuery({})
  // Every text here is Unicode text.
  return { ...all, lookAtMax: 1_000, ...more, name_contains: text as UnicodeText }
}

/** Returns the ids of all pages of a search, without empty pages at the end. */
async function pagesOf(
  repository: PlantRepository,
  search: PlantSearch,
): Promise<readonly bigint[][]> {
  const pages: bigint[][] = []
  let query = search
  let next: PlantId | undefined
  do {
    const page = await repository.search(query)
    next = page.next
    pages.push(idsOf(page.plants))
    if (next !== undefined) {
      const isLater = query.after === undefined || next > query.after
      assert(isLater, `${next} comes after ${query.after}`)
      query = { ...search, after: next }
    }
  } while (next !== undefined)

  const lastFound = pages.findLastIndex(({ length }) => length > 0)
  return pages.slice(0, lastFound + 1)
}
