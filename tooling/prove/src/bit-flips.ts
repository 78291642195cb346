import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DomainError, type Plant, type PlantRepository, parsePlant } from '@plant-store/domain'
import { createRandom } from '@plant-store/harness/random'
import { inspectStore, openStorage } from '@plant-store/persistence'
import { type Circumstances, figure, timeIsUp } from './part.ts'

/** What came of stores that have one wrong bit each. */
export interface FlipFinding {
  readonly tried: string
  readonly flips: number
  readonly failures: readonly string[]
}

const plantsOfStore = 15_000
const flipsMax = 300
const tags = ['climber', 'cactus', 'fern', 'palm', 'succulent']

/** Who notices a wrong bit; the first that does. */
const order = [
  'at the start',
  'by check',
  'by reading',
  'by nobody though a text is another',
  'by nobody as nothing is another',
] as const
type Noticed = (typeof order)[number]

/**
 * Flips single bits of a store of some MB, and looks who notices: the start, `plant-store check`, or whoever reads
 * every plant. A start that refuses the file leaves it as it is.
 *
 * @param folder where the stores are put, one after the other
 */
export async function flipBits(folder: string, circumstances: Circumstances): Promise<FlipFinding> {
  const { seed, scale } = circumstances
  const random = createRandom(seed)
  const place = join(folder, 'flipped')
  const file = join(place, 'plants.db')
  const url = `file:${file}`
  const plants = Array.from({ length: plantsOfStore }, (_, n) =>
    parsePlant({
      id: BigInt(n) * 7_919n,
      name: `Plant ${n} ${random.below(2 ** 30)} ${'abcdefgh '.repeat(random.below(20))}`,
      ...(random.chance(0.8) && { tag: random.pick(tags) }),
    }),
  )
  const sound = await makeStore(place, url, plants)
  const failures: string[] = []
  const counts = new Map<Noticed, number>()
  const wanted = Math.ceil(flipsMax * scale)
  let flips = 0
  for (; flips < wanted && !timeIsUp(circumstances); flips++) {
    const at = random.below(sound.length)
    const changed = Buffer.from(sound)
    changed[at] = (changed[at] as number) ^ (1 << random.below(8))
    rmSync(place, { recursive: true, force: true })
    mkdirSync(place)
    writeFileSync(file, changed)
    const noticed = await whoNotices(url, plants)
    counts.set(noticed, (counts.get(noticed) ?? 0) + 1)
    // Whoever refuses it, or only reads it, has nothing to write.
    if (readdirSync(place).join() !== 'plants.db')
      failures.push(`a bit flipped at byte ${at}: other files came beside it`)
    if (!readFileSync(file).equals(changed))
      failures.push(`a bit flipped at byte ${at}: the file was changed`)
  }
  rmSync(place, { recursive: true, force: true })
  const written = order.map(noticed => `${counts.get(noticed) ?? 0} noticed ${noticed}`).join(', ')
  return {
    tried: `${figure(flips)} of ${figure(wanted)} single bits flipped in a store of ${(sound.length / 2 ** 20).toFixed(1)} MiB (${written})`,
    flips,
    failures,
  }
}

/** @returns the bytes of the file, once it is closed */
async function makeStore(place: string, url: string, plants: readonly Plant[]): Promise<Buffer> {
  {
    await using storage = await openStorage({ url, queueRowsMax: plants.length })
    await Promise.all(plants.map(plant => storage.plants.insert(plant)))
  }
  return readFileSync(join(place, 'plants.db'))
}

async function whoNotices(url: string, plants: readonly Plant[]): Promise<Noticed> {
  const checked = await inspectStore(url).then(
    report => report.plants === plants.length,
    () => false,
  )
  let read: 'the same' | 'another' | 'an error'
  try {
    await using storage = await openStorage({ url })
    read = await readEverything(storage.plants, plants)
  } catch {
    return 'at the start'
  }
  if (!checked) return 'by check'
  if (read === 'an error') return 'by reading'
  return read === 'another' ? 'by nobody though a text is another' : 'by nobody as nothing is another'
}

/** In pages, tag by tag, and some one by one. */
async function readEverything(
  store: PlantRepository,
  plants: readonly Plant[],
): Promise<'the same' | 'another' | 'an error'> {
  const write = (all: readonly (Plant | undefined)[]) =>
    JSON.stringify(all.map(plant => plant && [`${plant.id}`, plant.name, plant.tag]))
  const everyPage = async (tag?: Plant['tag']) => {
    const all: Plant[] = []
    for (;;) {
      const last = all.at(-1)?.id
      const page = await store.page({
        limit: 1_000,
        ...(last !== undefined && { after: last }),
        ...(tag !== undefined && { tag }),
      })
      all.push(...page)
      // A damaged tree can lead in circles.
      if (page.length < 1_000 || all.length > 2 * plants.length) return all
    }
  }
  try {
    if (write(await everyPage()) !== write(plants)) return 'another'
    for (const tag of new Set(plants.flatMap(plant => plant.tag ?? [])))
      if (write(await everyPage(tag)) !== write(plants.filter(plant => plant.tag === tag))) return 'another'
    // Whatever leads one of them astray leads its neighbours astray too.
    const some = plants.filter((_, n) => n % 10 === 0)
    const found = await Promise.all(some.map(({ id }) => store.find(id)))
    return write(found) === write(some) ? 'the same' : 'another'
  } catch (error) {
    if (error instanceof DomainError && error.code === 'store-unavailable') return 'an error'
    throw error
  }
}
