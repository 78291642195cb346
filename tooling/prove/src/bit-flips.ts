import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DomainError, type Plant, type PlantRepository, parsePlant } from '@plant-store/domain'
import { createRandom, type Random } from '@plant-store/harness/random'
import { inspectStore, openStorage } from '@plant-store/persistence'
import { type Circumstances, type Finding, figure, timeIsUp } from './part.ts'

const plantsOfStore = 15_000
const flipsMax = 300
const tags = ['climber', 'cactus', 'fern', 'palm', 'succulent']

/** Who notices a flipped bit first. */
const order = [
  'at the start',
  'by check',
  'by reading',
  'by nobody though a text is another',
  'by nobody as nothing is another',
] as const
type Noticed = (typeof order)[number]

/** Returns the bytes with one bit flipped. */
export function flipBit(bytes: Buffer, at: number, random: Random): Buffer {
  const changed = Buffer.from(bytes)
  changed[at] = (changed[at] as number) ^ (1 << random.below(8))
  return changed
}

/**
 * Flips single bits of a store of a few MB, and records who notices: the start, `plant-store check`, or a reader of
 * every plant. A start that refuses the file must leave it unchanged.
 *
 * @param folder where the stores are put, one after another
 */
export async function flipBits(folder: string, circumstances: Circumstances): Promise<Finding> {
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
  {
    await using storage = await openStorage({ url, queueRowsMax: plants.length })
    await Promise.all(plants.map(plant => storage.plants.insert(plant)))
  }
  const sound = readFileSync(file)
  const failures: string[] = []
  const counts = Object.fromEntries(order.map(noticed => [noticed, 0])) as Record<Noticed, number>
  const wanted = Math.ceil(flipsMax * scale)
  let flips = 0
  for (; flips < wanted && !timeIsUp(circumstances); flips++) {
    const at = random.below(sound.length)
    const changed = flipBit(sound, at, random)
    rmSync(place, { recursive: true })
    mkdirSync(place)
    writeFileSync(file, changed)
    counts[await whoNotices(url, plants)]++
    // A process that refuses the store, or only reads it, must write nothing.
    if (readdirSync(place).join() !== 'plants.db')
      failures.push(`a bit flipped at byte ${at}: other files came beside it`)
    if (!readFileSync(file).equals(changed))
      failures.push(`a bit flipped at byte ${at}: the file was changed`)
  }
  const written = order.map(noticed => `${counts[noticed]} noticed ${noticed}`).join(', ')
  return {
    tried: `${figure(flips)} of ${figure(wanted)} single bits flipped in a store of ${(sound.length / 2 ** 20).toFixed(1)} MiB (${written})`,
    times: flips,
    failures,
  }
}

async function whoNotices(url: string, plants: readonly Plant[]): Promise<Noticed> {
  const isSound = await inspectStore(url).then(
    report => report.plants === plants.length,
    () => false,
  )
  let isSame: boolean
  try {
    await using storage = await openStorage({ url })
    try {
      isSame = await readsTheSame(storage.plants, plants)
    } catch (error) {
      if (!(error instanceof DomainError) || error.code !== 'store-unavailable') throw error
      return isSound ? 'by reading' : 'by check'
    }
  } catch {
    return 'at the start'
  }
  if (!isSound) return 'by check'
  return isSame ? 'by nobody as nothing is another' : 'by nobody though a text is another'
}

/** Reads in pages, tag by tag, and some one by one. */
async function readsTheSame(store: PlantRepository, plants: readonly Plant[]): Promise<boolean> {
  const write = (all: readonly (Plant | undefined)[]) =>
    JSON.stringify(all.map(plant => plant && [`${plant.id}`, plant.name, plant.tag]))
  const everyPage = async (query: Pick<Plant, 'tag'>) => {
    const all: Plant[] = []
    for (;;) {
      const last = all.at(-1)
      const page = await store.page({ limit: 1_000, ...(last && { after: last.id }), ...query })
      all.push(...page)
      // A damaged tree can lead in circles.
      if (page.length < 1_000 || all.length > 2 * plants.length) return all
    }
  }
  if (write(await everyPage({})) !== write(plants)) return false
  for (const { tag } of new Map(plants.map(plant => [plant.tag, plant])).values()) {
    if (tag === undefined) continue
    if (write(await everyPage({ tag })) !== write(plants.filter(plant => plant.tag === tag))) return false
  }
  // What leads one of them astray leads its neighbours astray too.
  const some = plants.filter((_, n) => n % 10 === 0)
  const found = await Promise.all(some.map(({ id }) => store.find(id)))
  return write(found.map(each => each?.plant)) === write(some)
}
