import { parsePlant } from '@plant-store/domain'
import { openNodeSqlite } from './node-sqlite.ts'

/** Inserts plants, as many at once as there are numbers in a round, and prints each id once it is kept; until killed. */
const storage = await openNodeSqlite(process.argv[2] as string)
for (let id = 1n; ; ) {
  const round = Array.from({ length: 10 }, async () => {
    const plant = parsePlant({ id: id++, name: 'Fern' })
    await storage.plants.insert(plant)
    console.log(`${plant.id}`)
  })
  await Promise.all(round)
}
