import assert from 'node:assert/strict'
import type { PageQuery } from '../page.ts'
import { type Identified, int64Max, int64Min, textBytes } from '../values.ts'
import { isVersion, type Version } from '../version.ts'
import type { VersionedRepository } from '../versioned.ts'
import { pageOf } from './memory.ts'
import { edgeIds, texts } from './samples.ts'

/** What every repository of things with an id and versions promises, such as one of plants. */
export interface ItemRepository<Item extends Identified, Filter extends object>
  extends VersionedRepository<Item, unknown> {
  page(query: PageQuery<Item> & Filter): Promise<readonly Item[]>
  /** Absent, as `saveIf` is, if no item can be replaced. */
  save?(item: Item): Promise<Version>
  saveIf?(item: Item, expected: Version | undefined): Promise<Version | undefined>
}

/** What the contract must know of an entity. */
export interface ItemSamples<Item extends Identified, Filter extends object, Repository> {
  /** Returns an item with this text in a required member. */
  item(id: bigint, text?: string): Item
  /** Returns an item with every member, and this text in each text. */
  full(id: bigint, text: string): Item
  find(repository: Repository, id: Item['id']): Promise<VersionedItem<Item> | undefined>
  /** The filter of a list of all. */
  readonly all: Filter
  readonly filters: Readonly<Record<string, ItemFilter<Item, Filter>>>
}

interface VersionedItem<Item> {
  readonly item: Item
  readonly version: Version
}

export interface ItemFilter<Item, Filter> {
  readonly filter: Filter
  readonly found: (id: bigint) => Item
  /** Items that it must not find. */
  readonly others: readonly ((id: bigint) => Item)[]
}

export interface ItemCase<Repository> {
  readonly name: string
  run(repository: Repository): Promise<void>
}

/** Returns the cases of the contract for an entity. Each takes an empty repository. */
export function itemRepositoryContract<
  Item extends Identified,
  Filter extends object,
  Repository extends ItemRepository<Item, Filter>,
>(samples: ItemSamples<Item, Filter, Repository>): readonly ItemCase<Repository>[] {
  const { item, full, find, all, filters } = samples
  const idOf = (id: bigint) => item(id).id
  const stored = (repository: Repository, id: bigint) => find(repository, idOf(id))
  const found = async (repository: Repository, id: bigint) =>
    (await stored(repository, id))?.item
  const versionOf = async (repository: Repository, id: bigint) =>
    (await stored(repository, id))?.version as Version
  /** Returns `save` and `saveIf`, made of other changes where a repository lacks them. */
  const savingTo = (repository: Repository) => {
    const insert = async (item: Item) =>
      (await repository.insert(item)) === 'inserted'
        ? versionOf(repository, item.id)
        : undefined
    return {
      save: async (item: Item) =>
        (await (repository.save?.(item) ??
          repository.remove(item.id).then(() => insert(item)))) as Version,
      async saveIf(item: Item, expected: Version | undefined) {
        if (repository.saveIf) {
          return repository.saveIf(item, expected)
        }
        const isFree =
          expected === undefined || (await repository.removeIf(item.id, expected))
        return isFree ? insert(item) : undefined
      },
    }
  }
  const everything = { limit: 1_000, ...all }
  const idsOf = (items: readonly Item[]) => items.map(({ id }) => id as bigint)

  type Run = (
    repository: Repository,
    saving: ReturnType<typeof savingTo>,
  ) => Promise<void>
  const promises: Record<string, Run> = {
    'keeps the whole int64 range exactly, in numeric order, whatever the order of insertion':
      async repository => {
        const shuffled = edgeIds.toSorted((a, b) => (`${a}` < `${b}` ? 1 : -1))
        for (const id of shuffled) {
          assert.equal(await repository.insert(item(id)), 'inserted')
        }
        for (const id of edgeIds) {
          assert.deepEqual(await found(repository, id), item(id))
        }
        assert.deepEqual(idsOf(await repository.page(everything)), edgeIds)
      },
    'keeps every text as it was given, in every member': async repository => {
      const items = texts.map((text, index) => full(BigInt(index), text))
      for (const each of items) {
        await repository.insert(each)
      }
      assert.deepEqual(await repository.page(everything), items)
      for (const each of items) {
        assert.deepEqual(await found(repository, each.id), each)
      }
    },
    'refuses a taken id and changes nothing': async repository => {
      await repository.insert(full(7n, 'first'))
      assert.equal(await repository.insert(item(7n, 'second')), 'id-taken')
      assert.equal(await repository.insert(full(7n, 'first')), 'id-taken')
      assert.deepEqual(await found(repository, 7n), full(7n, 'first'))
    },
    'lets exactly one of twenty racing inserts win': async repository => {
      const racers = Array.from({ length: 20 }, (_, n) => item(int64Max, `racer ${n}`))
      const outcomes = await Promise.all(racers.map(racer => repository.insert(racer)))
      assert.equal(outcomes.filter(outcome => outcome === 'inserted').length, 1)
      assert.deepEqual(
        await found(repository, int64Max),
        racers[outcomes.indexOf('inserted')],
      )
    },
    'returns the outcome of each of many concurrent changes': async repository => {
      await repository.insert(item(50n, 'was here'))
      const ids = Array.from({ length: 100 }, (_, n) => BigInt(n))
      const outcomes = await Promise.all(ids.map(id => repository.insert(item(id))))
      const expected = ids.map(id => (id === 50n ? 'id-taken' : 'inserted'))
      assert.deepEqual(outcomes, expected)
      const removed = await Promise.all([
        repository.remove(idOf(3n)),
        repository.remove(idOf(300n)),
      ])
      assert.deepEqual(removed, [true, false])
      assert.equal((await repository.page(everything)).length, 99)
    },
    'reports whether it removed, and frees the id': async repository => {
      await repository.insert(item(1n, 'a'))
      assert.equal(await repository.remove(idOf(1n)), true)
      assert.equal(await stored(repository, 1n), undefined)
      assert.equal(await repository.remove(idOf(1n)), false)
      assert.equal(await repository.insert(item(1n, 'again')), 'inserted')
      assert.deepEqual(await repository.page(everything), [item(1n, 'again')])
    },
    'saves by creating and by replacing, shows it to every reader, and saving twice is saving once':
      async (repository, { save }) => {
        for (let n = 0n; n < 20n; n++) {
          await save(item(1n, `version ${n}`))
          assert.deepEqual(await found(repository, 1n), item(1n, `version ${n}`))
        }
        for (let n = 0; n < 2; n++) {
          await save(item(1n, 'b'))
        }
        assert.deepEqual(await repository.page(everything), [item(1n, 'b')])
        for (const { filter, found, others } of Object.values(filters)) {
          for (const make of [found, ...others]) {
            await save(make(1n))
            const page = make === found ? [found(1n)] : []
            assert.deepEqual(await repository.page({ limit: 10, ...filter }), page)
          }
        }
        await save(full(1n, 'every field'))
        assert.deepEqual(await found(repository, 1n), full(1n, 'every field'))
      },
    'names every state by a version that no other state of it has': async (
      repository,
      { save, saveIf },
    ) => {
      const seen: unknown[] = []
      const change = async (made: Promise<unknown>) => {
        await made
        seen.push(await versionOf(repository, 1n))
      }
      await change(repository.insert(item(1n, 'a')))
      await change(save(item(1n, 'a')))
      await change(save(item(1n, 'b')))
      await change(saveIf(item(1n, 'a'), await versionOf(repository, 1n)))
      await repository.remove(idOf(1n))
      await change(repository.insert(item(1n, 'a')))
      await repository.removeIf(idOf(1n), await versionOf(repository, 1n))
      await change(save(item(1n, 'a')))
      await repository.remove(idOf(1n))
      await change(saveIf(item(1n, 'a'), undefined))
      assert.ok(seen.every(isVersion), `${seen}`)
      assert.equal(new Set(seen).size, 7)
    },
    'resolves to the version of what was saved, which stays until the next change':
      async (repository, { save, saveIf }) => {
        const saved = await save(item(1n, 'a'))
        await save(item(2n))
        assert.equal(await repository.insert(item(1n, 'b')), 'id-taken')
        assert.deepEqual(await stored(repository, 1n), {
          item: item(1n, 'a'),
          version: saved,
        })
        const replaced = await saveIf(item(1n, 'b'), saved)
        assert.deepEqual(await stored(repository, 1n), {
          item: item(1n, 'b'),
          version: replaced,
        })
        const created = await saveIf(item(3n), undefined)
        assert.deepEqual(await stored(repository, 3n), {
          item: item(3n),
          version: created,
        })
      },
    'saves over the expected version only, and nothing but that': async (
      repository,
      { save, saveIf },
    ) => {
      const versionBefore = await save(full(1n, 'a'))
      const other = await save(item(2n, 'other'))
      const version = (await saveIf(item(1n, 'b'), versionBefore)) as Version
      assert.deepEqual(await found(repository, 1n), item(1n, 'b'))
      const unknown = [
        'x',
        'f'.repeat(16),
        `${version}0`,
        version.toUpperCase(),
        '~'.repeat(64),
      ]
      for (const wrong of [
        versionBefore,
        other,
        undefined,
        ...unknown.filter(each => each !== version),
      ]) {
        assert.equal(await saveIf(item(1n, 'c'), wrong as Version | undefined), undefined)
      }
      assert.deepEqual(await stored(repository, 1n), { item: item(1n, 'b'), version })
      assert.equal(await saveIf(item(3n), other), undefined)
      assert.ok(await saveIf(full(1n, 'c'), version))
      assert.deepEqual(await repository.page(everything), [
        full(1n, 'c'),
        item(2n, 'other'),
      ])
      assert.equal(await versionOf(repository, 2n), other)
    },
    'lets exactly one of twenty racing changes of a state win': async (
      repository,
      { save, saveIf },
    ) => {
      for (const [id, state] of [
        [1n, undefined] as const,
        [2n, await save(item(2n))] as const,
      ]) {
        const racers = Array.from({ length: 20 }, (_, n) => item(id, `racer ${n}`))
        const versions = await Promise.all(racers.map(racer => saveIf(racer, state)))
        const winner = versions.findIndex(version => version !== undefined)
        assert.deepEqual(await stored(repository, id), {
          item: racers[winner],
          version: versions[winner],
        })
        assert.equal(versions.filter(version => version !== undefined).length, 1)
      }
    },
    'returns the outcome of each of many concurrent conditional changes': async (
      repository,
      { save, saveIf },
    ) => {
      const ids = Array.from({ length: 100 }, (_, n) => BigInt(n))
      const versions = await Promise.all(ids.map(id => save(item(id, 'old'))))
      const isMade = (id: bigint) => id % 3n !== 0n
      const change = async (id: bigint, n: number) => {
        const expected = versions[isMade(id) ? n : (n + 1) % 100] as Version
        if (n % 2 === 1) {
          return repository.removeIf(idOf(id), expected)
        }
        return (await saveIf(item(id, 'new'), expected)) !== undefined
      }
      assert.deepEqual(await Promise.all(ids.map(change)), ids.map(isMade))
      const left = ids.filter(id => id % 2n === 0n || !isMade(id))
      const items = left.map(id => item(id, isMade(id) ? 'new' : 'old'))
      assert.deepEqual(await repository.page(everything), items)
    },
    'removes the expected version only, and nothing but that': async (
      repository,
      { save },
    ) => {
      const versionBefore = await save(item(1n, 'a'))
      const version = await save(item(1n, 'a'))
      const other = await save(item(2n))
      for (const wrong of [versionBefore, other, 'x', `${version}0`]) {
        assert.equal(await repository.removeIf(idOf(1n), wrong as Version), false)
      }
      assert.equal(await repository.removeIf(idOf(3n), version), false)
      assert.equal(await versionOf(repository, 1n), version)
      const racers = Array.from({ length: 20 }, () =>
        repository.removeIf(idOf(1n), version),
      )
      assert.equal((await Promise.all(racers)).filter(Boolean).length, 1)
      assert.deepEqual(await repository.page(everything), [item(2n)])
    },
    'pages by limit and after, with open and closed ends': async repository => {
      for (let n = -5n; n < 5n; n++) {
        await repository.insert(item(n))
      }
      const page = async (limit: number, after?: bigint) =>
        idsOf(
          await repository.page({
            limit,
            ...(after !== undefined && { after: idOf(after) }),
            ...all,
          }),
        )
      assert.deepEqual(await page(3), [-5n, -4n, -3n])
      assert.deepEqual(await page(3, -3n), [-2n, -1n, 0n])
      assert.deepEqual(await page(3, 3n), [4n])
      assert.deepEqual(await page(100, 4n), [])
      assert.deepEqual(await page(100, int64Max), [])
      assert.deepEqual(await page(2, int64Min), [-5n, -4n])
    },
    'ends a page with the one whose texts reach the bound in bytes': async repository => {
      const items = ['', 'a', 'é', '日', '🌱'].flatMap((text, n) => {
        const id = 2n * BigInt(n)
        return [item(id, text), full(id + 1n, text)]
      })
      for (const each of items) {
        await repository.insert(each)
      }
      const whole = items.reduce((sum, each) => sum + textBytes(each), 0)
      for (let textBytesMax = 1; textBytesMax <= whole + 1; textBytesMax++) {
        const ids = idsOf(pageOf(items, { limit: 10, textBytesMax }))
        assert.deepEqual(
          idsOf(await repository.page({ limit: 10, textBytesMax, ...all })),
          ids,
        )
        assert.deepEqual(
          idsOf(await repository.page({ limit: 2, textBytesMax, ...all })),
          ids.slice(0, 2),
        )
      }
    },
  }

  for (const [name, { filter, found, others }] of Object.entries(filters)) {
    promises[`filters by ${name}, page by page`] = async repository => {
      const ids = [0n, 10n, 20n, 30n] as const
      for (const id of ids) {
        for (const [n, make] of [found, ...others].entries()) {
          await repository.insert(make(id + BigInt(n)))
        }
      }
      const page = async (bounds: Partial<PageQuery<Item>>) =>
        idsOf(await repository.page({ limit: 10, ...bounds, ...filter }))
      assert.deepEqual(await page({}), ids)
      assert.deepEqual(await page({ limit: 1, after: idOf(10n) }), [20n])
      assert.deepEqual(await page({ after: idOf(30n) }), [])
      assert.deepEqual(await page({ textBytesMax: textBytes(found(0n)) + 1 }), [0n, 10n])
      await repository.remove(idOf(10n))
      assert.deepEqual(await page({}), [0n, 20n, 30n])
    }
  }
  const lists = { all: { filter: all, found: item }, ...filters }
  for (const [name, { filter, found }] of Object.entries(lists)) {
    promises[`returns as many as requested, by ${name}`] = async repository => {
      const ids = Array.from({ length: 1_100 }, (_, n) => BigInt(n))
      await Promise.all(ids.map(id => repository.insert(found(id))))
      for (const limit of manyLimits) {
        assert.deepEqual(
          idsOf(await repository.page({ limit, ...filter })),
          ids.slice(0, limit),
        )
      }
    }
  }

  return Object.entries(promises).map(([name, run]) => ({
    name,
    run: repository => run(repository, savingTo(repository)),
  }))
}

/** About sizes at which an adapter might end a page or a list of parameters. */
const manyLimits = [100, 129, 1_000, 1_001, 1_099, 1_100, 1_101]
