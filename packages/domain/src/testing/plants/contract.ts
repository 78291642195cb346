import assert from 'node:assert/strict'
import type { Plant, PlantId } from '../../plants/plant.ts'
import {
  type PlantPageQuery,
  type PlantSearch,
  parsePlantPageQuery as query,
} from '../../plants/query.ts'
import type { PlantRepository } from '../../plants/repository.ts'
import { int64Max, type UnicodeText } from '../../values.ts'
import type { Version } from '../../version.ts'
import { type ItemCase, type ItemSamples, itemRepositoryContract } from '../items.ts'
import { texts } from '../samples.ts'
import { fullPlant, idsOf, plant } from './samples.ts'

/** One promise of the port. `run` takes an empty repository and rejects if it breaks the promise. */
export type PlantRepositoryCase = ItemCase<PlantRepository>

const found = async (repository: PlantRepository, id: bigint) =>
  (await repository.find(plant(id).id))?.plant

/** A text, and the names here that contain it. */
const parts: readonly (readonly [text: string, ...names: string[]])[] = [
  ['deLICiosa', 'Monstera deliciosa', 'DELICIOSA', 'xdeliciosax'],
  ['Ä', 'Ä', 'xÄx'],
  ['ä', 'ä'],
  ['м', 'клм'],
  ['М', 'КЛМ'],
  ['i\u0307', 'i\u0307'],
  ['\u0130', '\u0130'],
  ['k9', 'k9', 'K9'],
  ['\u212a9', '\u212a9'],
  ['100%', '100% sun'],
  ['100 s', '100 sun'],
  ['a_b', 'a_b', 'A_B'],
  ['a-b', 'a-b'],
  ['\\', 'back\\slash', '\\%'],
  [`'"`, `quotes '"`],
  ['\u0301', 'e\u0301'],
  ['\u00e9', '\u00e9'],
  ['🌱', '🌱', 'x🌱\u{1f468}'],
  [' \t\n', 'white \t\n space'],
  ['none such'],
]

/** Returns the ids of page after page, until there are no more, without an empty page at the end. */
async function searched(
  repository: PlantRepository,
  search: PlantSearch,
): Promise<readonly bigint[][]> {
  const pages: bigint[][] = []
  for (let after = search.after; ; ) {
    const { plants, next } = await repository.search({
      ...search,
      ...(after !== undefined && { after }),
    })
    pages.push(idsOf(plants))
    if (next === undefined) {
      return pages.slice(0, pages.findLastIndex(({ length }) => length > 0) + 1)
    }
    assert.ok(after === undefined || next > after, 'it goes on')
    after = next
  }
}

const search = (
  text: string,
  more: Omit<Partial<PlantSearch>, 'name_contains'> = {},
): PlantSearch => ({
  ...query({}),
  ...more,
  name_contains: text as PlantSearch['name_contains'],
  lookAtMax: more.lookAtMax ?? 1_000,
})

const promises: Record<string, PlantRepositoryCase['run']> = {
  'filters by any text as a tag': async repository => {
    const plants = texts.map((text, index) => fullPlant(BigInt(index), text))
    for (const each of plants) {
      await repository.insert(each)
    }
    for (const each of plants) {
      assert.deepEqual(await repository.page(query({ tag: each.tag as string })), [each])
    }
  },
  'inserts many together as one after the other': async repository => {
    await repository.insert(plant(2n, 'was here'))
    const full = fullPlant(1n, 'full')
    const all = [plant(3n, 'first'), plant(2n, 'too late'), full, plant(3n, 'second')]
    assert.deepEqual(await repository.insertAll(all), [
      'inserted',
      'id-taken',
      'inserted',
      'id-taken',
    ])
    assert.deepEqual(await repository.insertAll([]), [])
    assert.deepEqual(await repository.insertAll([plant(2n), plant(4n)]), [
      'id-taken',
      'inserted',
    ])
    assert.equal(await repository.remove(plant(4n).id), true)
    assert.deepEqual(await repository.page(query({})), [
      full,
      plant(2n, 'was here'),
      plant(3n, 'first'),
    ])
  },
  'saves many together as one after the other': async repository => {
    const before = await repository.save(plant(2n, 'was here'))
    const all = [
      plant(3n, 'first', 'a'),
      fullPlant(2n, 'replaced'),
      plant(1n),
      plant(3n, 'last'),
    ]
    const [firstOf3, of2, of1, lastOf3] = (await repository.saveAll(all)) as Version[]
    const stored = await Promise.all(
      [1n, 2n, 3n].map(id => repository.find(plant(id).id)),
    )
    const plants = [plant(1n), fullPlant(2n, 'replaced'), plant(3n, 'last')]
    assert.deepEqual(
      stored.map(each => each?.plant),
      plants,
    )
    assert.deepEqual(
      stored.map(each => each?.version),
      [of1, of2, lastOf3],
    )
    assert.equal(new Set([before, firstOf3, of2, of1, lastOf3]).size, 5)
    assert.deepEqual(await repository.saveAll([]), [])
    assert.equal((await repository.saveAll([plant(1n, 'again'), plant(4n)])).length, 2)
    assert.deepEqual(await found(repository, 1n), plant(1n, 'again'))
    assert.deepEqual(await found(repository, 4n), plant(4n))
  },
  'takes the changes that one caller makes in the order it makes them':
    async repository => {
      const version = await repository.save(plant(1n, 'a'))
      const outcomes = await Promise.all([
        repository.insert(plant(1n, 'b')),
        repository.saveIf(plant(1n, 'c'), version),
        repository.saveIf(plant(1n, 'd'), version),
        repository.removeIf(plant(1n).id, version),
        repository.save(plant(1n, 'e')),
        repository.saveIf(plant(1n, 'f'), undefined),
        repository.remove(plant(1n).id),
        repository.saveIf(plant(1n, 'g'), version),
        repository.saveIf(plant(1n, 'h'), undefined),
        repository.insert(plant(1n, 'i')),
      ])
      assert.deepEqual([outcomes[0], outcomes[9]], ['id-taken', 'id-taken'])
      const made = [true, false, false, true, false, true, false, true]
      assert.deepEqual(outcomes.slice(1, 9).map(Boolean), made)
      assert.deepEqual(await repository.find(plant(1n).id), {
        plant: plant(1n, 'h'),
        version: outcomes[8],
      })
    },
  'finds a part of a name, with A to Z as a to z and all else exactly':
    async repository => {
      const names = parts.flatMap(([, ...names]) => names)
      for (const [id, name] of names.entries()) {
        await repository.insert(plant(BigInt(id), name, 'none such'))
      }
      for (const [text, ...matching] of parts) {
        const { plants, next } = await repository.search(search(text))
        assert.deepEqual(
          [plants.map(({ name }) => name), next],
          [matching, undefined],
          text,
        )
      }
    },
  'looks at a bounded number of plants, and goes on where it stopped':
    async repository => {
      assert.deepEqual(await repository.search(search('a')), { plants: [] })
      const found = [-3n, 0n, 1n, 8n]
      for (let id = -4n; id < 10n; id++) {
        await repository.insert(plant(id, found.includes(id) ? 'A' : 'b'))
      }
      for (let lookAtMax = 1; lookAtMax <= 15; lookAtMax++) {
        const pages = await searched(repository, search('a', { lookAtMax }))
        assert.deepEqual(pages.flat(), found)
        assert.equal(pages.length, Math.ceil(13 / lookAtMax))
      }
      const pages = [[-3n], [0n, 1n], [], [], [8n]]
      assert.deepEqual(await searched(repository, search('a', { lookAtMax: 3 })), pages)
      assert.deepEqual(
        await searched(repository, search('a', { after: 8n as PlantId })),
        [],
      )
      assert.deepEqual(
        await searched(repository, search('a', { after: 7n as PlantId })),
        [[8n]],
      )
      assert.deepEqual(
        await searched(repository, search('b', { after: int64Max as PlantId })),
        [],
      )
    },
  'ends a page of a search at its limit and at the size of its texts':
    async repository => {
      for (let id = -2n; id < 6n; id++) {
        await repository.insert(plant(id, id % 2n === 0n ? 'even' : 'odd'))
      }
      for (const bounds of [{ limit: 2 }, { textBytesMax: 5 }]) {
        assert.deepEqual((await searched(repository, search('e', bounds))).map(String), [
          '-2,0',
          '2,4',
        ])
      }
    },
  'searches the plants of a tag': async repository => {
    for (let id = 0n; id < 12n; id++) {
      await repository.insert(
        plant(id, id % 3n === 0n ? 'third' : 'other', id % 2n === 0n ? 'even' : 'odd'),
      )
    }
    const tag = plant(0n, 'n', 'even').tag as UnicodeText
    for (const lookAtMax of [1, 2, 3, 6, 7]) {
      assert.deepEqual(
        (await searched(repository, search('THIRD', { tag, lookAtMax }))).flat(),
        [0n, 6n],
      )
    }
    assert.deepEqual(await searched(repository, search('third', { tag, lookAtMax: 2 })), [
      [0n],
      [6n],
    ])
  },
  'searches long names and beside long tags': async repository => {
    const long = 'x'.repeat(70_000)
    for (let id = 0n; id < 4n; id++) {
      await repository.insert(plant(id, `${long}${id}${long}`))
    }
    for (let id = 4n; id < 8n; id++) {
      await repository.insert(plant(id, `${id}`, long))
    }
    for (const [text, ids] of [
      ['x2X', [2n]],
      ['5', [5n]],
      ['x', [0n, 1n, 2n, 3n]],
    ] as const) {
      assert.deepEqual(
        (await searched(repository, search(text, { textBytesMax: 10_000 }))).flat(),
        ids,
      )
    }
  },
  'goes on with a search whatever was removed and created in between':
    async repository => {
      for (let id = 0n; id < 8n; id++) {
        await repository.insert(plant(id))
      }
      const { next } = await repository.search(search('plant', { lookAtMax: 3 }))
      assert.equal(next, 2n)
      for (const id of [0n, 2n, 4n]) {
        await repository.remove(plant(id).id)
      }
      for (const id of [-1n, 9n]) {
        await repository.insert(plant(id))
      }
      const rest = await searched(
        repository,
        search('plant', { after: next as PlantId, lookAtMax: 2 }),
      )
      assert.deepEqual(rest.flat(), [3n, 5n, 6n, 7n, 9n])
    },
  'counts the whole list beside a page, as far as it is asked to': async repository => {
    const counted = async (input: Parameters<typeof query>[0], countMax = 100) => {
      const { plants, total } = await repository.pageCounted({
        ...query(input),
        countMax,
      })
      assert.deepEqual(plants, await repository.page(query(input)))
      return total
    }
    assert.equal(await counted({}), 0)
    assert.equal(await counted({ after: 1n }), 0)
    for (let id = 0n; id < 12n; id++) {
      await repository.insert(plant(id, 'p', id < 5n ? 'low' : 'high'))
    }
    assert.equal(await counted({ limit: 1 }), 12)
    assert.equal(await counted({ limit: 3, after: 9n }), 12)
    for (const after of [11n, int64Max]) {
      assert.equal(await counted({ after }), 12)
    }
    assert.equal(await counted({ tag: 'low', limit: 1 }), 5)
    assert.equal(await counted({ tag: 'low', after: 7n }), 5)
    assert.equal(await counted({ tag: 'none' }), 0)
    for (const countMax of [1, 11, 12, 13]) {
      assert.equal(await counted({}, countMax), Math.min(12, countMax))
    }
    assert.equal(await counted({ tag: 'high' }, 6), 6)
    const bounded = { ...query({}), textBytesMax: 4, countMax: 100 }
    assert.deepEqual(idsOf((await repository.pageCounted(bounded)).plants), [0n])
  },
}

const tagged = (tag?: string) => (id: bigint) => plant(id, 'p', tag)

export const plantSamples: ItemSamples<
  Plant,
  Pick<PlantPageQuery, 'tag'>,
  PlantRepository
> = {
  item: plant,
  full: fullPlant,
  async find(repository, id) {
    const found = await repository.find(id)
    return found === undefined ? undefined : { item: found.plant, version: found.version }
  },
  all: {},
  filters: {
    tag: {
      filter: { tag: 'even' as UnicodeText },
      found: tagged('even'),
      others: ['odd', 'Even', 'eve', 'even ', '', undefined].map(tagged),
    },
    'an empty tag': {
      filter: { tag: '' as UnicodeText },
      found: tagged(''),
      others: [tagged(), tagged(' ')],
    },
  },
}

/** What every repository promises, and what only one of plants does. */
export const plantRepositoryContract: readonly PlantRepositoryCase[] = [
  ...itemRepositoryContract(plantSamples),
  ...Object.entries(promises).map(([name, run]) => ({ name, run })),
]
