import { open } from 'node:fs/promises'
import { type Plant, type PlantId, type PlantRepository, parsePlant, textBytes } from '@plant-store/domain'

export interface Journal extends PlantRepository {
  close(): Promise<void>
}

/** The nursery's own adapter: every change is a line at the end of a file, and the seedlings are what the lines say. */
export async function openJournal(path: string): Promise<Journal> {
  const file = await open(path, 'a+')
  const seedlings = new Map<PlantId, Plant>()
  for (const line of (await file.readFile('utf8')).split('\n').filter(line => line !== '')) {
    const [id, kept] = JSON.parse(line) as [string, object | null]
    const seedling = parsePlant({ name: '', ...kept, id: BigInt(id) })
    if (kept === null) seedlings.delete(seedling.id)
    else seedlings.set(seedling.id, seedling)
  }

  let written = Promise.resolve()
  const append = (id: PlantId, kept: object | null) => {
    const line = `${JSON.stringify([`${id}`, kept])}\n`
    written = written.then(async () => {
      await file.appendFile(line)
      await file.datasync()
    })
    return written
  }
  const keep = (seedling: Plant) => {
    const { id, ...kept } = seedling
    seedlings.set(id, seedling)
    return append(id, kept)
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
    async remove(id) {
      if (!seedlings.delete(id)) return false
      await append(id, null)
      return true
    },
    async close() {
      await written
      await file.close()
    },
  }
}
