import { randomUUID } from 'node:crypto'
import { open } from 'node:fs/promises'
import {
  type Plant,
  type PlantId,
  type PlantRepository,
  type PlantVersion,
  parsePlant,
  parsePlantId,
  textBytes,
  type VersionedPlant,
} from '@plant-store/domain'
import { parseJsonRecord, writeJsonRecord } from '@plant-store/json'

export interface Journal extends PlantRepository {
  close(): Promise<void>
}

/** The nursery's own adapter: every change is a line at the end of a file, and the seedlings are what the lines say. */
export async function openJournal(path: string): Promise<Journal> {
  const file = await open(path, 'a+')
  const seedlings = new Map<PlantId, VersionedPlant>()
  for (const line of (await file.readFile('utf8')).split('\n').filter(line => line !== '')) {
    const { version, ...kept } = parseJsonRecord(line) as { version?: PlantVersion; id?: unknown }
    if (version === undefined) seedlings.delete(parsePlantId(kept.id))
    else seedlings.set(parsePlantId(kept.id), { plant: parsePlant(kept), version })
  }

  let written = Promise.resolve()
  const append = (change: object) => {
    const line = `${writeJsonRecord(change)}\n`
    written = written.then(async () => {
      await file.appendFile(line)
      await file.datasync()
    })
    return written
  }
  const keep = async (plant: Plant) => {
    const version = randomUUID() as string as PlantVersion
    seedlings.set(plant.id, { plant, version })
    await append({ ...plant, version })
    return version
  }
  const remove = async (id: PlantId) => {
    if (!seedlings.delete(id)) return false
    await append({ id })
    return true
  }

  return {
    async insert(seedling) {
      if (seedlings.has(seedling.id)) return 'id-taken'
      await keep(seedling)
      return 'inserted'
    },
    find: async id => seedlings.get(id),
    async page({ limit, after, tag, textBytesMax = Number.POSITIVE_INFINITY }) {
      const page = [...seedlings.values()]
        .map(({ plant }) => plant)
        .filter(({ id }) => after === undefined || id > after)
        .filter(seedling => tag === undefined || seedling.tag === tag)
        .sort((a, b) => (a.id < b.id ? -1 : 1))
        .slice(0, limit)
      let bytes = 0
      const end = page.findIndex(seedling => {
        bytes += textBytes(seedling)
        return bytes >= textBytesMax
      })
      return end === -1 ? page : page.slice(0, end + 1)
    },
    save: keep,
    async saveIf(seedling, expected) {
      return seedlings.get(seedling.id)?.version === expected ? keep(seedling) : undefined
    },
    remove,
    async removeIf(id, expected) {
      return seedlings.get(id)?.version === expected && remove(id)
    },
    async close() {
      await written
      await file.close()
    },
  }
}
