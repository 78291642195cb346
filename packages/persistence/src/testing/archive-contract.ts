import assert from 'node:assert/strict'
import { isPlantVersion, type Plant, type PlantRepository } from '@plant-store/domain'
import { edgeIds, fullPlant, plant, texts } from '@plant-store/domain/testing'
import type { OnTaken, PlantArchive, PlantSnapshot } from '../archive.ts'

/** An archive and a repository over the same plants. */
export interface ArchivedPlants {
  readonly archive: PlantArchive
  readonly plants: PlantRepository
}

/** One promise of the port. `run` takes an archive of an empty store and rejects if it breaks the promise. */
export interface PlantArchiveCase {
  readonly name: string
  run(store: ArchivedPlants): Promise<void>
}

async function readAll(snapshot: PlantSnapshot): Promise<Plant[]> {
  const plants: Plant[] = []
  for await (const some of snapshot.plants()) plants.push(...some)
  return plants
}

async function storedIn(archive: PlantArchive): Promise<Plant[]> {
  await using snapshot = await archive.snapshot()
  const plants = await readAll(snapshot)
  assert.equal(snapshot.count, plants.length)
  return plants
}

/** Compares one by one: a deep comparison of thousands takes long to find a difference. */
function assertSame(found: readonly Plant[], expected: readonly Plant[]): void {
  for (const [index, plant] of expected.entries()) assert.deepEqual(found[index], plant)
  assert.equal(found.length, expected.length)
}

const many = (count: number, name?: string) => Array.from({ length: count }, (_, n) => plant(BigInt(n), name))

const cases: Readonly<Record<string, (store: ArchivedPlants) => Promise<void>>> = {
  async 'loads what a repository finds, and reads what a repository inserted'({ archive, plants }) {
    const loaded = plant(1n, 'by the archive', 'a')
    const inserted = plant(2n, 'by the repository')
    await plants.insert(inserted)
    assert.deepEqual(await archive.load([loaded], 'keep'), ['inserted'])
    assert.deepEqual((await plants.find(loaded.id))?.plant, loaded)
    assert.deepEqual(await storedIn(archive), [loaded, inserted])
  },
  async 'names the states of loaded plants as a repository does'({ archive, plants }) {
    const id = plant(1n).id
    const versionsAfter: unknown[] = []
    const load = async (name: string, onTaken: OnTaken) => {
      await archive.load([plant(1n, name), plant(2n)], onTaken)
      versionsAfter.push((await plants.find(id))?.version)
    }
    const stage = async (name: string, onTaken: OnTaken) => {
      await using staged = await archive.stage(onTaken)
      await staged.add([plant(1n, name), plant(3n)])
      await staged.keep()
      versionsAfter.push((await plants.find(id))?.version)
    }
    await load('a', 'keep')
    await load('a', 'keep')
    await stage('a', 'keep')
    const first = versionsAfter[0]
    assert.deepEqual(versionsAfter.splice(0), [first, first, first])
    await load('b', 'replace')
    await stage('c', 'replace')
    await plants.remove(id)
    await stage('c', 'keep')
    const versions = [first, ...versionsAfter, (await plants.find(plant(2n).id))?.version]
    assert.ok(versions.every(isPlantVersion), `${versions}`)
    assert.equal(new Set(versions).size, 5)
  },
  async 'keeps every id and text exactly, in numeric order'({ archive }) {
    const plants = edgeIds.map((id, n) => {
      const text = texts[n % texts.length] as string
      return n % 3 === 0 ? plant(id, text) : fullPlant(id, text)
    })
    await archive.load(plants.toReversed(), 'keep')
    assert.deepEqual(await storedIn(archive), plants)
  },
  async 'reads an empty store as nothing, and loads nothing as nothing'({ archive }) {
    assert.deepEqual(await archive.load([], 'keep'), [])
    assert.deepEqual(await storedIn(archive), [])
  },
  async 'keeps a taken id as it is, without holding up the others'({ archive, plants }) {
    await plants.insert(plant(1n, 'was here', 'a'))
    const outcomes = await archive.load([plant(1n), plant(2n, 'first'), plant(2n), plant(3n)], 'keep')
    assert.deepEqual(outcomes, ['id-taken', 'inserted', 'id-taken', 'inserted'])
    assert.deepEqual(await storedIn(archive), [plant(1n, 'was here', 'a'), plant(2n, 'first'), plant(3n)])
  },
  async 'distinguishes a stored plant from another with its id'({ archive, plants }) {
    const stored = [plant(1n, 'a'), plant(2n, 'b', ''), fullPlant(3n, 'every field')]
    for (const each of stored) await plants.insert(each)
    const others = [plant(1n, 'a', ''), plant(2n, 'b'), plant(3n, 'c'), plant(4n, 'd')]
    const given = [...stored, plant(4n), plant(4n), ...others]
    const there = Array(3).fill('already-there')
    const outcomes = [...there, 'inserted', 'already-there', ...Array(4).fill('id-taken')]
    {
      await using staged = await archive.stage('keep')
      assert.deepEqual(await staged.add(given), outcomes)
      assert.deepEqual(await staged.add(stored), there)
      assert.deepEqual(await staged.add([plant(4n), plant(4n, 'd')]), ['already-there', 'id-taken'])
      assert.equal(await staged.keep(), 'kept')
    }
    await plants.remove(plant(4n).id)
    assert.deepEqual(await archive.load(given, 'keep'), outcomes)
    assert.deepEqual(await archive.load(stored, 'replace'), Array(3).fill('replaced'))
    assert.deepEqual(await storedIn(archive), [...stored, plant(4n)])
  },
  async 'replaces the plant of a taken id, the last one winning'({ archive, plants }) {
    await plants.insert(plant(1n, 'was here', 'a'))
    const outcomes = await archive.load([plant(1n, 'new'), plant(2n), plant(2n, 'last', 'b')], 'replace')
    assert.deepEqual(outcomes, ['replaced', 'inserted', 'replaced'])
    assert.deepEqual(await storedIn(archive), [plant(1n, 'new'), plant(2n, 'last', 'b')])
  },
  async 'reads a store of thousands a few at a time'({ archive }) {
    await archive.load(many(5_000), 'keep')
    await using snapshot = await archive.snapshot()
    let most = 0
    for await (const some of snapshot.plants()) most = Math.max(most, some.length)
    assert.ok(most <= 2_000, `${most} plants at once`)
    assertSame(await readAll(snapshot), many(5_000))
  },
  async 'reads the store as it was when the snapshot was made, whatever is changed meanwhile'(store) {
    const { archive, plants } = store
    await archive.load(many(5_000, 'before'), 'keep')
    await using snapshot = await archive.snapshot()
    await plants.remove(plant(0n).id)
    const read: Plant[] = []
    for await (const some of snapshot.plants()) {
      if (read.length === 0) {
        await plants.insert(plant(10_000n, 'after'))
        await plants.save(plant(4_998n, 'after'))
        await archive.load([plant(4_999n, 'after')], 'replace')
      }
      read.push(...some)
    }
    assert.equal(snapshot.count, 5_000)
    assertSame(read, many(5_000, 'before'))
    assert.deepEqual((await storedIn(archive)).at(-1), plant(10_000n, 'after'))
  },
  async 'shows nobody a staged plant until all of them are kept'({ archive, plants }) {
    await using staged = await archive.stage('keep')
    assert.deepEqual(await staged.add([plant(2n), plant(1n)]), ['inserted', 'inserted'])
    assert.deepEqual(await staged.add([plant(3n, 'c', '')]), ['inserted'])
    assert.equal(await plants.find(plant(1n).id), undefined)
    assert.deepEqual(await storedIn(archive), [])
    assert.equal(await staged.keep(), 'kept')
    assert.deepEqual((await plants.find(plant(1n).id))?.plant, plant(1n))
    assert.deepEqual(await storedIn(archive), [plant(1n), plant(2n), plant(3n, 'c', '')])
  },
  async 'forgets what was staged and not kept'({ archive }) {
    {
      await using staged = await archive.stage('replace')
      await staged.add(many(100))
    }
    assert.deepEqual(await storedIn(archive), [])
    await using again = await archive.stage('keep')
    assert.deepEqual(await again.add([plant(1n)]), ['inserted'])
    assert.equal(await again.keep(), 'kept')
    assert.deepEqual(await storedIn(archive), [plant(1n)])
  },
  async 'reports ids that are taken in the store or were staged before'({ archive, plants }) {
    await plants.insert(plant(1n, 'was here'))
    const given = [plant(1n), plant(2n), plant(2n, 'again')]
    const stage = async (onTaken: OnTaken) => {
      await using staged = await archive.stage(onTaken)
      const outcomes = await staged.add(given)
      assert.equal(await staged.keep(), 'kept')
      return outcomes
    }
    assert.deepEqual(await stage('keep'), ['id-taken', 'inserted', 'id-taken'])
    assert.deepEqual(await storedIn(archive), [plant(1n, 'was here'), plant(2n)])
    assert.deepEqual(await stage('replace'), ['replaced', 'replaced', 'replaced'])
    assert.deepEqual(await storedIn(archive), [plant(1n), plant(2n, 'again')])
  },
  async 'keeps nothing of a staged load when somebody takes one of its ids meanwhile'({ archive, plants }) {
    await using staged = await archive.stage('keep')
    await staged.add(many(50))
    await plants.insert(plant(33n, 'meanwhile'))
    assert.deepEqual(await staged.keep(), { takenMeanwhile: 33n })
    assert.deepEqual(await storedIn(archive), [plant(33n, 'meanwhile')])
  },
  async 'replaces with a staged load what somebody stored meanwhile'({ archive, plants }) {
    await using staged = await archive.stage('replace')
    await staged.add([...many(50), fullPlant(50n, 'every field')])
    await plants.insert(plant(33n, 'meanwhile', 'x'))
    await plants.insert(plant(50n, 'meanwhile'))
    assert.equal(await staged.keep(), 'kept')
    assert.deepEqual(await storedIn(archive), [...many(50), fullPlant(50n, 'every field')])
  },
}

export const plantArchiveContract: readonly PlantArchiveCase[] = Object.entries(cases).map(([name, run]) => ({
  name,
  run,
}))
