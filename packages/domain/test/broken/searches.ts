import type { Plant, PlantId } from '@plant-store/domain'
import { type Break, type Broken, everything, lowerCase, without } from './break.ts'

/** Searches in another way. */
function searching(matches: (plant: Plant, text: string) => boolean): Break {
  return right => ({
    async search({ name_contains, lookAtMax, limit, textBytesMax: _, ...list }) {
      const window = await right.page({ ...list, limit: lookAtMax })
      const matching = window.filter(plant => matches(plant, name_contains))
      const isFull = matching.length > limit
      const last = isFull ? matching[limit - 1] : window[lookAtMax - 1]
      const plants = matching.slice(0, limit)
      return last === undefined ? { plants } : { plants, next: last.id }
    },
  })
}

/** Returns another cursor of a search. */
function stopping(change: (next: PlantId, plants: readonly Plant[]) => unknown): Break {
  return right => ({
    async search(query) {
      const { plants, next } = await right.search(query)
      const changed = next && change(next, plants)
      return changed === undefined ? { plants } : { plants, next: changed }
    },
  })
}

/** Repositories whose searches are wrong. */
export const brokenSearches: Broken = {
  'searches in one case': searching(({ name }, text) => name.includes(text)),
  'searches in any case of all letters': searching(({ name }, text) =>
    name.toLowerCase().includes(text.toLowerCase()),
  ),
  'searches normalised names': searching(({ name }, text) =>
    lowerCase(name).normalize('NFC').includes(lowerCase(text).normalize('NFC')),
  ),
  'searches by a pattern': searching(({ name }, text) => {
    const wildcards: Readonly<Record<string, string>> = { '%': '.*', _: '.' }
    const pattern = lowerCase(text).replace(
      /[\W_]/g,
      character => wildcards[character] ?? `\\${character}`,
    )
    return new RegExp(pattern, 's').test(lowerCase(name))
  }),
  'searches how names begin': searching(({ name }, text) =>
    lowerCase(name).startsWith(lowerCase(text)),
  ),
  'searches the first 1,000 characters': searching(({ name }, text) =>
    lowerCase(name.slice(0, 1_000)).includes(lowerCase(text)),
  ),
  'searches names and tags': searching(({ name, tag = '' }, text) =>
    [name, tag].some(each => lowerCase(each).includes(lowerCase(text))),
  ),
  'searches all tags': right => ({
    search: query => right.search(without(query, 'tag')),
  }),
  'searches from the first plant on': right => ({
    search: query => right.search(without(query, 'after')),
  }),
  'looks at all plants': right => ({
    search: query => right.search({ ...query, lookAtMax: everything.limit }),
  }),
  'ends a search at an empty page': stopping((next, plants) =>
    plants.length > 0 ? next : undefined,
  ),
  'goes on behind the last match': stopping((next, plants) => plants.at(-1)?.id ?? next),
  'looks at the last plant again': stopping(next => next - 1n),
  'leaves out the plant behind the last one it looked at': stopping(next => next + 1n),
  'lets no limit end a page of a search': right => ({
    search: query => right.search({ ...query, ...everything }),
  }),
  'lets no text end a page of a search': right => ({
    search: query => right.search(without(query, 'textBytesMax')),
  }),
  'goes on only behind a plant that is still stored': right => ({
    async search(query) {
      const { after } = query
      const isGone = after !== undefined && (await right.find(after)) === undefined
      return isGone ? { plants: [] } : right.search(query)
    },
  }),
}
