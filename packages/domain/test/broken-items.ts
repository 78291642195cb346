import { type Identified, isSame, textBytes, type Version } from '@plant-store/domain'
import type { ItemCase, ItemRepository, ItemSamples } from '@plant-store/domain/testing'
import { expect, test } from 'vitest'

/** Returns what is put in the place of methods of a repository that is right. */
export type Break<Repository, Methods = Partial<Repository>> = (
  right: Repository,
) => Methods

/** Tests that the repository keeps the contract, that each broken one does not, and that every case is needed. */
export function testContract<Repository extends object>(
  contract: readonly ItemCase<Repository>[],
  create: () => Repository,
  broken: Readonly<Record<string, Break<Repository, object>>>,
): void {
  /** Returns the names of the cases that a repository fails. */
  const failedBy = async (make: Break<Repository, object>) => {
    const failed: string[] = []
    for (const { name, run } of contract) {
      const right = create()
      await run({ ...right, ...make(right) }).catch(() => failed.push(name))
    }
    return failed
  }

  test('the repository in memory keeps the contract', async () => {
    expect(await failedBy(() => ({}))).toEqual([])
  })

  const failures = new Map<string, readonly string[]>()
  test.each(Object.entries(broken))(
    'the contract catches a repository that %s',
    async (name, make) => {
      failures.set(name, await failedBy(make))
      expect(failures.get(name)).not.toEqual([])
    },
  )

  test('every case of the contract catches some of them', async () => {
    const useful = new Set<string>()
    for (const [name, make] of Object.entries(broken)) {
      for (const failed of failures.get(name) ?? (await failedBy(make))) {
        useful.add(failed)
      }
    }
    expect(contract.map(({ name }) => name).filter(name => !useful.has(name))).toEqual([])
  })
}

export const everything = { limit: Number.MAX_SAFE_INTEGER }
const later = () => new Promise<void>(resolve => setImmediate(resolve))

/** Returns the object without some of its members. */
export function without<Value extends object>(
  value: Value,
  ...names: readonly string[]
): Value {
  const others = Object.entries(value).filter(([name]) => !names.includes(name))
  // Only of optional members.
  return Object.fromEntries(others) as Value
}

/**
 * Returns broken repositories of an entity, given the samples of its contract: those of any, and further ones of one
 * whose items can be replaced.
 */
export function brokenItems<
  Item extends Identified,
  Filter extends object,
  Repository extends ItemRepository<Item, Filter>,
>({ item, full, find, all }: ItemSamples<Item, Filter, Repository>) {
  type Query = Parameters<ItemRepository<Item, Filter>['page']>[0]
  type BreakItems<Right = Repository> = Break<
    Right,
    Partial<ItemRepository<Item, Filter>>
  >

  const optional = Object.keys(full(1n, 'text')).filter(
    name => !Object.hasOwn(item(1n), name),
  )
  const required = (each: Item) => without(each, ...optional)
  const isFilter = (name: string) =>
    !['limit', 'after', 'textBytesMax', ...Object.keys(all)].includes(name)
  const isFiltered = (query: Query) => Object.keys(query).some(isFilter)
  const unfiltered = (query: Query) =>
    without(query, ...Object.keys(query).filter(isFilter))

  /** Breaks every item on its way in. */
  const storing =
    (change: (each: Item) => object): BreakItems =>
    right => ({ insert: each => right.insert(change(each) as Item) })
  const identifying =
    (change: (id: bigint) => bigint): BreakItems =>
    right => ({
      insert: each => right.insert({ ...each, id: change(each.id) }),
      find: id => right.find(change(id) as Item['id']),
    })
  const text = (change: (text: string) => string) =>
    storing(each =>
      Object.fromEntries(
        Object.entries(each).map(([name, value]) => [
          name,
          typeof value === 'string' ? change(value) : value,
        ]),
      ),
    )
  const filling = (value: unknown) =>
    storing(each => ({
      ...Object.fromEntries(optional.map(name => [name, value])),
      ...each,
    }))
  const paging =
    (change: (query: Query) => Query): BreakItems =>
    right => ({ page: query => right.page(change(query)) })
  const shortening =
    (shorten: (page: readonly Item[], query: Query) => readonly Item[]): BreakItems =>
    right => ({ page: async query => shorten(await right.page(query), query) })
  const continuing = (change: (after: bigint) => bigint) =>
    paging(query =>
      query.after === undefined
        ? query
        : { ...query, after: change(query.after) as Item['id'] },
    )
  const sorting =
    (compare: (a: Item, b: Item) => number): BreakItems =>
    right => ({
      page: async query =>
        (await right.page({ ...query, ...everything }))
          .toSorted(compare)
          .slice(0, query.limit),
    })
  /** Ends a page by another sum than that of the bytes. */
  const endingAt =
    (sum: (before: number, each: Item) => number): BreakItems =>
    right => ({
      async page(query) {
        const page = await right.page(without(query, 'textBytesMax'))
        let bytes = 0
        const end = page.findIndex(each => {
          bytes = sum(bytes, each)
          return bytes >= (query.textBytesMax ?? Number.POSITIVE_INFINITY)
        })
        return end === -1 ? page : page.slice(0, end + 1)
      },
    })
  const textsOf = (each: Item) =>
    Object.values(each).filter(value => typeof value === 'string')
  /** Names the states of items by something else. */
  const versioning =
    (
      name: (stored: { readonly item: Item; readonly version: Version }) => string,
    ): BreakItems =>
    right => {
      const versionOf = async (id: Item['id']) => {
        const stored = await find(right, id)
        return stored && (name(stored) as Version)
      }
      const rightVersion = async (id: Item['id'], expected: Version | undefined) =>
        (await versionOf(id)) === expected
          ? (await find(right, id))?.version
          : (expected ?? ('none' as Version))
      return {
        async find(id) {
          const found = await right.find(id)
          return found && { ...found, version: await versionOf(id) }
        },
        removeIf: async (id, expected) =>
          right.removeIf(id, (await rightVersion(id, expected)) as Version),
      }
    }

  const items: Readonly<Record<string, BreakItems>> = {
    'lets the last writer win': right => ({
      async insert(each) {
        await right.remove(each.id)
        return right.insert(each)
      },
    }),
    'overwrites, but says that the id is taken': right => ({
      async insert(each) {
        const wasThere = await right.remove(each.id)
        await right.insert(each)
        return wasThere ? 'id-taken' : 'inserted'
      },
    }),
    'takes the same item again for inserted': right => ({
      async insert(each) {
        const stored = await find(right, each.id)
        return stored && isSame(stored.item, each) ? 'inserted' : right.insert(each)
      },
    }),
    'looks first and inserts later': right => ({
      async insert(each) {
        if ((await right.find(each.id)) !== undefined) {
          return 'id-taken'
        }
        await later()
        await right.remove(each.id)
        return right.insert(each)
      },
    }),
    'never inserts twice, whatever was removed between': right => {
      const seen = new Set<Item['id']>()
      return {
        async insert(each) {
          if (seen.has(each.id)) {
            return 'id-taken'
          }
          seen.add(each.id)
          return right.insert(each)
        },
      }
    },
    'returns outcomes to the wrong callers': right => {
      let before: ReturnType<typeof right.insert> = Promise.resolve('inserted')
      return {
        insert(each) {
          const answer = before
          before = right.insert(each)
          return answer
        },
      }
    },
    'answers before the change is made': right => ({
      async insert(each) {
        void later().then(() => right.insert(each))
        return 'inserted'
      },
    }),
    'removes without telling': right => ({
      remove: id => right.remove(id).then(() => true),
    }),
    'reports without removing': right => ({
      remove: async id => (await right.find(id)) !== undefined,
    }),
    'finds null instead of nothing': right => ({
      find: async id => (await right.find(id)) ?? null,
    }),

    'rounds ids to JavaScript numbers': identifying(id => BigInt(Number(id))),
    'keeps 32 bits of an id': identifying(id => BigInt.asIntN(32, id)),
    'takes ids for unsigned': sorting((a, b) =>
      BigInt.asUintN(64, a.id) < BigInt.asUintN(64, b.id) ? -1 : 1,
    ),
    'sorts ids as text': sorting((a, b) => (`${a.id}` < `${b.id}` ? -1 : 1)),
    'sorts in descending order': sorting((a, b) => (a.id < b.id ? 1 : -1)),

    'trims texts': text(each => each.trim()),
    'normalises texts': text(each => each.normalize('NFC')),
    'folds the case of texts': text(each => each.toLowerCase()),
    'strips control characters': text(each => each.replace(/\p{Cc}/gu, '')),
    'drops a byte order mark': text(each => each.replace('\ufeff', '')),
    'keeps 255 characters of a text': text(each => each.slice(0, 255)),
    'keeps the basic plane only': text(each =>
      each.replace(/[\u{10000}-\u{10ffff}]/gu, '\ufffd'),
    ),
    'keeps ISO 8859-1 only': text(each => each.replace(/[^\0-\xff]/g, '?')),
    'doubles quotes': text(each => each.replaceAll("'", "''")),
    'drops empty texts': storing(each =>
      without(each, ...optional.filter(name => each[name as keyof Item] === '')),
    ),
    'makes an empty text of none': filling(''),
    'makes null of none': filling(null),
    'makes a member that is undefined of none': filling(undefined),
    'forgets members that are not required': storing(required),

    'returns pages that are one too long': paging(query => ({
      ...query,
      limit: query.limit + 1,
    })),
    'returns pages that are one too short': shortening((page, { limit }) =>
      page.slice(0, limit - 1),
    ),
    'returns 100 items at most': shortening(page => page.slice(0, 100)),
    'returns 1,000 items of a filter at most': shortening((page, query) =>
      isFiltered(query) ? page.slice(0, 1_000) : page,
    ),
    'begins a page with the last item of the one before': continuing(after => after - 1n),
    'leaves out the item after the last one': continuing(after => after + 1n),
    'starts at zero': paging(query => ({
      ...query,
      after: query.after ?? (-1n as Item['id']),
    })),
    'wraps around after the largest id': paging(query =>
      query.after === 2n ** 63n - 1n ? without(query, 'after') : query,
    ),
    'ignores the filters of a query': paging(unfiltered),
    'ignores where a page of a filter begins': paging(query =>
      isFiltered(query) ? without(query, 'after') : query,
    ),
    'limits first and filters then': right => ({
      async page(query) {
        const found = (await right.page({ ...query, ...everything })).map(({ id }) => id)
        return (await right.page(unfiltered(query))).filter(({ id }) =>
          found.includes(id),
        )
      },
    }),
    'lets no text end a page of a filter': paging(query =>
      isFiltered(query) ? without(query, 'textBytesMax') : query,
    ),
    'counts the UTF-16 code units of a page': endingAt(
      (sum, each) => sum + textsOf(each).join('').length,
    ),
    'counts the code points of a page': endingAt(
      (sum, each) => sum + [...textsOf(each).join('')].length,
    ),
    'counts only required members of a page': endingAt(
      (sum, each) => sum + textBytes(required(each)),
    ),
    'looks at each item of a page alone': endingAt((_, each) => textBytes(each)),
    'ends a page before the item that reaches the bound': shortening(
      (page, { textBytesMax }) =>
        textBytesMax === undefined || page.length < 2 ? page : page.slice(0, -1),
    ),
    'ends a page with the item that passes the bound': paging(query =>
      query.textBytesMax === undefined
        ? query
        : { ...query, textBytesMax: query.textBytesMax + 1 },
    ),

    'names a state by its content': versioning(({ item: { id, ...others } }) =>
      `${id}-${Object.values(others).join('-')}`.slice(0, 64),
    ),
    'returns versions that no entity tag may hold': versioning(
      ({ version }) => `"${version}"`,
    ),
    'removes whatever version is expected': right => ({
      removeIf: id => right.remove(id),
    }),
    'compares versions of removals by how they begin': right => ({
      async removeIf(id, expected) {
        const version = (await find(right, id))?.version
        return right.removeIf(
          id,
          version && expected.startsWith(version) ? version : expected,
        )
      },
    }),
    'looks at the version first and removes later': right => ({
      async removeIf(id, expected) {
        if ((await find(right, id))?.version !== expected) {
          return false
        }
        await later()
        await right.remove(id)
        return true
      },
    }),
  }

  type Replaceable = Repository & Required<ItemRepository<Item, Filter>>
  const replacements: Readonly<Record<string, BreakItems<Replaceable>>> = {
    'lets a later change overtake an earlier one': right => ({
      save: each => later().then(() => right.save(each)),
    }),
    'forgets members that are not required on a save': right => ({
      save: each => right.save(required(each)),
    }),
    'forgets members that are not required on a conditional save': right => ({
      saveIf: (each, expected) => right.saveIf(required(each), expected),
    }),
    'keeps old members on a save without them': right => ({
      save: async each => right.save({ ...(await find(right, each.id))?.item, ...each }),
    }),
    'saves only what is stored': right => ({
      save: async each =>
        (await right.find(each.id)) ? right.save(each) : ('a' as Version),
    }),
    'saves only what is not stored': right => ({
      async save(each) {
        await right.insert(each)
        return (await find(right, each.id))?.version as Version
      },
    }),
    'resolves to another version than it keeps': right => ({
      save: async each => `${await right.save(each)}0` as Version,
    }),
    'resolves a conditional save to the version before': right => ({
      saveIf: async (each, expected) =>
        (await right.saveIf(each, expected)) && (expected ?? ('a' as Version)),
    }),
    'keeps the version of an item that is saved as it was': right => ({
      async save(each) {
        const stored = await find(right, each.id)
        return stored && isSame(stored.item, each) ? stored.version : right.save(each)
      },
    }),
    'saves whatever version is expected': right => ({ saveIf: each => right.save(each) }),
    'creates where a version is expected': right => ({
      saveIf: async (each, expected) =>
        (await right.find(each.id)) ? right.saveIf(each, expected) : right.save(each),
    }),
    'replaces where no item is expected': right => ({
      saveIf: (each, expected) =>
        expected === undefined ? right.save(each) : right.saveIf(each, expected),
    }),
    'compares versions by how they begin': right => ({
      async saveIf(each, expected) {
        const version = (await find(right, each.id))?.version
        return right.saveIf(
          each,
          version && expected?.startsWith(version) ? version : expected,
        )
      },
    }),
    'looks at the version first and saves later': right => ({
      async saveIf(each, expected) {
        if ((await find(right, each.id))?.version !== expected) {
          return undefined
        }
        await later()
        return right.save(each)
      },
    }),
  }
  return { items, replacements }
}
