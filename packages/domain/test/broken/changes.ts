import {
  isSame,
  type Plant,
  type PlantId,
  parsePlantId,
  type Version,
} from '@plant-store/domain'
import { type Break, type Broken, later, withoutTag } from './break.ts'

/** Breaks every plant on its way in. */
function storing(change: (plant: Plant) => object): Break {
  return right => ({ insert: plant => right.insert(change(plant) as Plant) })
}

/** Breaks every text on its way in. */
function storingText(change: (text: string) => string): Break {
  return storing(plant => {
    const members = Object.entries(plant).map(([name, value]) => [
      name,
      typeof value === 'string' ? change(value) : value,
    ])
    return Object.fromEntries(members)
  })
}

/** Breaks every id, both on its way in and in `find`. */
function identifying(change: (id: bigint) => bigint): Break {
  return right => ({
    insert: plant => right.insert({ ...plant, id: parsePlantId(change(plant.id)) }),
    find: id => right.find(parsePlantId(change(id))),
  })
}

/** Repositories whose changes keep or report the wrong thing. */
export const brokenChanges: Broken = {
  'lets the last writer win': right => ({
    async insert(plant) {
      await right.remove(plant.id)
      return right.insert(plant)
    },
  }),
  'overwrites, but says that the id is taken': right => ({
    async insert(plant) {
      const wasStored = await right.remove(plant.id)
      await right.insert(plant)
      return wasStored ? 'id-taken' : 'inserted'
    },
  }),
  'takes the same plant again for inserted': right => ({
    async insert(plant) {
      const stored = await right.find(plant.id)
      const isStored = stored !== undefined && isSame(stored.plant, plant)
      return isStored ? 'inserted' : right.insert(plant)
    },
  }),
  'looks first and inserts later': right => ({
    async insert(plant) {
      if ((await right.find(plant.id)) !== undefined) {
        return 'id-taken'
      }
      await later()
      await right.remove(plant.id)
      return right.insert(plant)
    },
  }),
  'never inserts twice, whatever was removed between': right => {
    const seen = new Set<PlantId>()
    return {
      async insert(plant) {
        if (seen.has(plant.id)) {
          return 'id-taken'
        }
        seen.add(plant.id)
        return right.insert(plant)
      },
    }
  },
  'returns outcomes to the wrong callers': right => {
    let before: ReturnType<typeof right.insert> = Promise.resolve('inserted')
    return {
      insert(plant) {
        const answer = before
        before = right.insert(plant)
        return answer
      },
    }
  },
  'answers before the change is made': right => ({
    async insert(plant) {
      void later().then(() => right.insert(plant))
      return 'inserted'
    },
  }),
  'removes without telling': right => ({
    async remove(id) {
      await right.remove(id)
      return true
    },
  }),
  'reports without removing': right => ({
    remove: async id => (await right.find(id)) !== undefined,
  }),
  'finds null instead of nothing': right => ({
    find: async id => (await right.find(id)) ?? null,
  }),

  'rounds ids to JavaScript numbers': identifying(id => BigInt(Number(id))),
  'keeps 32 bits of an id': identifying(id => BigInt.asIntN(32, id)),

  'trims texts': storingText(text => text.trim()),
  'normalises texts': storingText(text => text.normalize('NFC')),
  'folds the case of texts': storingText(text => text.toLowerCase()),
  'strips control characters': storingText(text => text.replace(/\p{Cc}/gu, '')),
  'drops a byte order mark': storingText(text => text.replace('\ufeff', '')),
  'keeps 255 characters of a text': storingText(text => text.slice(0, 255)),
  'keeps the basic plane only': storingText(text =>
    text.replace(/[\u{10000}-\u{10ffff}]/gu, '\ufffd'),
  ),
  'keeps ISO 8859-1 only': storingText(text => text.replace(/[^\0-\xff]/g, '?')),
  'doubles quotes': storingText(text => text.replaceAll("'", "''")),
  'drops empty tags': storing(plant => (plant.tag === '' ? withoutTag(plant) : plant)),
  'makes an empty tag of none': storing(plant => ({ tag: '', ...plant })),
  'makes a tag that is null of none': storing(plant => ({ tag: null, ...plant })),
  'makes a tag that is undefined of none': storing(plant => ({
    tag: undefined,
    ...plant,
  })),
  'forgets tags': storing(withoutTag),

  'lets a later change overtake an earlier one': right => ({
    async save(plant) {
      await later()
      return right.save(plant)
    },
  }),
  'forgets the tag on a save': right => ({
    save: plant => right.save(withoutTag(plant)),
  }),
  'keeps the old tag on a save without one': right => ({
    async save(plant) {
      const stored = await right.find(plant.id)
      return right.save({ ...stored?.plant, ...plant })
    },
  }),
  'saves only what is stored': right => ({
    async save(plant) {
      const stored = await right.find(plant.id)
      return stored === undefined ? 'a' : right.save(plant)
    },
  }),
  'saves only what is not stored': right => ({
    async save(plant) {
      await right.insert(plant)
      return (await right.find(plant.id))?.version
    },
  }),

  'returns the outcomes of many together in another order': right => ({
    async insertAll(plants) {
      const outcomes = await right.insertAll(plants)
      return outcomes.toReversed()
    },
  }),
  'returns the versions of many together in another order': right => ({
    async saveAll(plants) {
      const versions = await right.saveAll(plants)
      return versions.toReversed()
    },
  }),
  'saves the first of many with one id': right => ({
    async saveAll(plants) {
      const versions = await right.saveAll(plants.toReversed())
      return versions.toReversed()
    },
  }),
  'forgets the tags of many inserted together': right => ({
    insertAll: plants => right.insertAll(plants.map(withoutTag)),
  }),
  'forgets the tags of many saved together': right => ({
    saveAll: plants => right.saveAll(plants.map(withoutTag)),
  }),
  'gives many saved together one version': right => ({
    async saveAll(plants): Promise<readonly Version[]> {
      const versions = await right.saveAll(plants)
      return versions.map(() => versions[0] as Version)
    },
  }),
}
