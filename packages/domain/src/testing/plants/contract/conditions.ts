import assert from 'node:assert/strict'
import type { PlantRepository } from '../../../plants/repository.ts'
import { isVersion, type Version } from '../../../version.ts'
import type { PlantRepositoryCase } from '../contract.ts'
import { fullPlant, plant, plantId } from '../samples.ts'
import {
  allPlants,
  firstIds,
  savedVersion,
  storedPlant,
  storedVersion,
} from './stored.ts'

/** Promises of versions, and of changes that depend on them. */
export const conditions: Readonly<Record<string, PlantRepositoryCase['run']>> = {
  async 'names every state by a version that no other state of it has'(repository) {
    const versions: Version[] = []
    const after = async (change: Promise<unknown>) => {
      await change
      const version = await storedVersion(repository, 1n)
      versions.push(version)
      return version
    }
    await after(repository.insert(plant(1n, 'a')))
    await after(repository.save(plant(1n, 'a')))
    const third = await after(repository.save(plant(1n, 'b')))
    await after(repository.saveIf(plant(1n, 'a'), third))
    await repository.remove(plantId(1n))
    const fifth = await after(repository.insert(plant(1n, 'a')))
    await repository.removeIf(plantId(1n), fifth)
    await after(repository.save(plant(1n, 'a')))
    await repository.remove(plantId(1n))
    await after(repository.saveIf(plant(1n, 'a'), undefined))

    assert(versions.every(isVersion), `${versions}`)
    assert.equal(new Set(versions).size, 7, `${versions}`)
  },
  async 'saves over the expected version only, and nothing but that'(repository) {
    const versionBefore = await savedVersion(repository, fullPlant(1n, 'a'))
    const other = await savedVersion(repository, plant(2n, 'other'))
    const version = await repository.saveIf(plant(1n, 'b'), versionBefore)
    assert(version)
    assert.deepEqual(await storedPlant(repository, 1n), plant(1n, 'b'))

    for (const wrong of [versionBefore, other, undefined, ...otherThan(version)]) {
      const saved = await repository.saveIf(plant(1n, 'c'), wrong)
      assert.equal(saved, undefined, `expecting ${wrong} instead of ${version}`)
    }
    const stored = await repository.find(plantId(1n))
    assert.deepEqual(stored, { plant: plant(1n, 'b'), version })
    assert.equal(await repository.saveIf(plant(3n), other), undefined)
    assert(await repository.saveIf(fullPlant(1n, 'c'), version))
    const all = [fullPlant(1n, 'c'), plant(2n, 'other')]
    assert.deepEqual(await allPlants(repository), all)
    assert.equal(await storedVersion(repository, 2n), other)
  },
  async 'removes the expected version only, and nothing but that'(repository) {
    const versionBefore = await savedVersion(repository, plant(1n, 'a'))
    const version = await savedVersion(repository, plant(1n, 'a'))
    const other = await savedVersion(repository, plant(2n))

    for (const wrong of [versionBefore, other, ...otherThan(version)]) {
      const isRemoved = await repository.removeIf(plantId(1n), wrong)
      assert.equal(isRemoved, false, `expecting ${wrong} instead of ${version}`)
    }
    assert.equal(await repository.removeIf(plantId(3n), version), false)
    assert.equal(await storedVersion(repository, 1n), version)

    const remove = () => repository.removeIf(plantId(1n), version)
    const outcomes = await Promise.all(Array.from({ length: 20 }, remove))
    assert.equal(outcomes.filter(Boolean).length, 1, `${outcomes}`)
    assert.deepEqual(await allPlants(repository), [plant(2n)])
  },
  'lets exactly one of twenty racing changes of no plant win': repository =>
    raceFrom(repository, undefined),
  async 'lets exactly one of twenty racing changes of a version win'(repository) {
    await raceFrom(repository, await savedVersion(repository, plant(1n)))
  },
  async 'returns the outcome of each of many conditional changes'(repository) {
    const ids = firstIds(100)
    const saves = ids.map(id => savedVersion(repository, plant(id, 'old')))
    const versions = await Promise.all(saves)
    const isMade = (id: bigint) => id % 3n !== 0n
    const change = async (id: bigint, index: number) => {
      const expected = versions[isMade(id) ? index : (index + 1) % 100]
      assert(expected)
      if (index % 2 === 1) {
        return repository.removeIf(plantId(id), expected)
      }
      const version = await repository.saveIf(plant(id, 'new'), expected)
      return version !== undefined
    }

    assert.deepEqual(await Promise.all(ids.map(change)), ids.map(isMade))
    const remainingIds = ids.filter(id => id % 2n === 0n || !isMade(id))
    const plants = remainingIds.map(id => plant(id, isMade(id) ? 'new' : 'old'))
    assert.deepEqual(await allPlants(repository), plants)
  },
  async 'makes the changes of one caller in the order of its calls'(repository) {
    const version = await savedVersion(repository, plant(1n, 'a'))
    const outcomes = await Promise.all([
      repository.insert(plant(1n, 'b')),
      repository.saveIf(plant(1n, 'c'), version),
      repository.saveIf(plant(1n, 'd'), version),
      repository.removeIf(plantId(1n), version),
      savedVersion(repository, plant(1n, 'e')),
      repository.saveIf(plant(1n, 'f'), undefined),
      repository.remove(plantId(1n)),
      repository.saveIf(plant(1n, 'g'), version),
      repository.saveIf(plant(1n, 'h'), undefined),
      repository.insert(plant(1n, 'i')),
    ])
    const [b, c, d, removeIf, e, f, remove, g, h, i] = outcomes

    assert.deepEqual({ b, i }, { b: 'id-taken', i: 'id-taken' })
    const refused = { d, f, g, removeIf }
    const nothing = undefined
    assert.deepEqual(refused, { d: nothing, f: nothing, g: nothing, removeIf: false })
    assert(c && e && h, `the versions are ${c}, ${e} and ${h}`)
    assert.equal(remove, true, 'the removal')
    const stored = await repository.find(plantId(1n))
    assert.deepEqual(stored, { plant: plant(1n, 'h'), version: h })
  },
}

/** Returns versions that differ from this one, some in a single character or in case. */
function otherThan(version: Version): readonly Version[] {
  const texts = [
    'x',
    'f'.repeat(16),
    `${version}0`,
    version.toUpperCase(),
    version.toLowerCase(),
    '~'.repeat(64),
  ]
  return texts.filter(isVersion).filter(other => other !== version)
}

/** Twenty callers change plant 1 from this state at the same time. */
async function raceFrom(
  repository: PlantRepository,
  state: Version | undefined,
): Promise<void> {
  const racers = firstIds(20).map(n => plant(1n, `racer ${n}`))
  const outcomes = await Promise.all(
    racers.map(async racer => {
      const version = await repository.saveIf(racer, state)
      return { plant: racer, version }
    }),
  )

  const winners = outcomes.filter(({ version }) => version !== undefined)
  assert.equal(winners.length, 1, `${winners.length} changes were made`)
  assert.deepEqual(await repository.find(plantId(1n)), winners[0])
}
