import assert from 'node:assert/strict'
import type { PlantRepository } from '../plant-repository.ts'
import { isPlantVersion, type PlantVersion } from '../plant-version.ts'
import { fullPlant, plant } from './samples.ts'

export const found = async (repository: PlantRepository, id: bigint) =>
  (await repository.find(plant(id).id))?.plant
const versionOf = async (repository: PlantRepository, id: bigint) =>
  (await repository.find(plant(id).id))?.version as PlantVersion

/** The port's promises about versions and conditional changes. */
export const versionPromises: Record<string, (repository: PlantRepository) => Promise<void>> = {
  'names every state of a plant by a version that no other state of it has': async repository => {
    const seen: unknown[] = []
    const change = async (made: Promise<unknown>) => {
      await made
      seen.push(await versionOf(repository, 1n))
    }
    await change(repository.insert(plant(1n, 'a')))
    await change(repository.save(plant(1n, 'a')))
    await change(repository.save(plant(1n, 'b')))
    await change(repository.saveIf(plant(1n, 'a'), await versionOf(repository, 1n)))
    await repository.remove(plant(1n).id)
    await change(repository.insert(plant(1n, 'a')))
    await repository.removeIf(plant(1n).id, await versionOf(repository, 1n))
    await change(repository.save(plant(1n, 'a')))
    await repository.remove(plant(1n).id)
    await change(repository.saveIf(plant(1n, 'a'), undefined))
    assert.ok(seen.every(isPlantVersion), `${seen}`)
    assert.equal(new Set(seen).size, 7)
  },
  'resolves to the version of what was saved, which stays until the next change': async repository => {
    const saved = await repository.save(plant(1n, 'a'))
    await repository.save(plant(2n))
    assert.equal(await repository.insert(plant(1n, 'b')), 'id-taken')
    assert.deepEqual(await repository.find(plant(1n).id), { plant: plant(1n, 'a'), version: saved })
    const replaced = await repository.saveIf(plant(1n, 'b'), saved)
    assert.deepEqual(await repository.find(plant(1n).id), { plant: plant(1n, 'b'), version: replaced })
    const created = await repository.saveIf(plant(3n), undefined)
    assert.deepEqual(await repository.find(plant(3n).id), { plant: plant(3n), version: created })
  },
  'saves over the expected version only, and nothing but that plant': async repository => {
    const versionBefore = await repository.save(fullPlant(1n, 'a'))
    const other = await repository.save(plant(2n, 'other'))
    const version = (await repository.saveIf(plant(1n, 'b'), versionBefore)) as PlantVersion
    assert.deepEqual(await found(repository, 1n), plant(1n, 'b'))
    const unknown = ['x', 'f'.repeat(16), `${version}0`, version.toUpperCase(), '~'.repeat(64)]
    for (const wrong of [versionBefore, other, undefined, ...unknown.filter(each => each !== version)])
      assert.equal(await repository.saveIf(plant(1n, 'c'), wrong as PlantVersion | undefined), undefined)
    assert.deepEqual(await repository.find(plant(1n).id), { plant: plant(1n, 'b'), version })
    assert.equal(await repository.saveIf(plant(3n), other), undefined)
    assert.ok(await repository.saveIf(fullPlant(1n, 'c'), version))
    assert.deepEqual(await repository.page({ limit: 1_000 }), [fullPlant(1n, 'c'), plant(2n, 'other')])
    assert.equal(await versionOf(repository, 2n), other)
  },
  'removes the expected version only, and nothing but that plant': async repository => {
    const versionBefore = await repository.save(plant(1n, 'a'))
    const version = await repository.save(plant(1n, 'a'))
    const other = await repository.save(plant(2n))
    for (const wrong of [versionBefore, other, 'x', `${version}0`])
      assert.equal(await repository.removeIf(plant(1n).id, wrong as PlantVersion), false)
    assert.equal(await repository.removeIf(plant(3n).id, version), false)
    assert.equal(await versionOf(repository, 1n), version)
    assert.equal(await repository.removeIf(plant(1n).id, version), true)
    assert.equal(await repository.removeIf(plant(1n).id, version), false)
    assert.deepEqual(await repository.page({ limit: 1_000 }), [plant(2n)])
  },
  'lets exactly one of twenty racing changes of a state win': async repository => {
    const racers = Array.from({ length: 20 }, (_, n) => plant(1n, `racer ${n}`))
    for (const state of [undefined, await repository.save(plant(2n))]) {
      const versions = await Promise.all(
        racers.map(racer =>
          repository.saveIf(state === undefined ? racer : { ...racer, id: plant(2n).id }, state),
        ),
      )
      assert.equal(versions.filter(version => version !== undefined).length, 1)
      const winner = versions.findIndex(version => version !== undefined)
      const stored = await repository.find(plant(state === undefined ? 1n : 2n).id)
      assert.equal(stored?.plant.name, `racer ${winner}`)
      assert.equal(stored?.version, versions[winner])
    }
    const version = await versionOf(repository, 1n)
    const removed = await Promise.all(racers.map(({ id }) => repository.removeIf(id, version)))
    assert.equal(removed.filter(Boolean).length, 1)
    assert.equal(await found(repository, 1n), undefined)
  },
  'returns the outcome of each of many concurrent conditional changes': async repository => {
    const ids = Array.from({ length: 100 }, (_, n) => BigInt(n))
    const versions = await Promise.all(ids.map(id => repository.save(plant(id, 'old'))))
    const expected = versions.map((version, n) =>
      n % 3 === 0 ? (versions[(n + 1) % 100] as PlantVersion) : version,
    )
    const made = await Promise.all(
      ids.map(async (id, n) =>
        n % 2 === 0
          ? (await repository.saveIf(plant(id, 'new'), expected[n])) !== undefined
          : repository.removeIf(plant(id).id, expected[n] as PlantVersion),
      ),
    )
    assert.deepEqual(
      made,
      ids.map(id => id % 3n !== 0n),
    )
    const left = ids.filter(id => id % 2n === 0n || id % 3n === 0n)
    assert.deepEqual(
      await repository.page({ limit: 1_000 }),
      left.map(id => plant(id, id % 3n === 0n ? 'old' : 'new')),
    )
  },
  'judges each conditional change of one caller on what those before it left': async repository => {
    const version = await repository.save(plant(1n, 'a'))
    const outcomes = await Promise.all([
      repository.saveIf(plant(1n, 'b'), version),
      repository.saveIf(plant(1n, 'c'), version),
      repository.removeIf(plant(1n).id, version),
      repository.saveIf(plant(1n, 'd'), undefined),
      repository.remove(plant(1n).id),
      repository.saveIf(plant(1n, 'e'), version),
      repository.saveIf(plant(1n, 'f'), undefined),
    ])
    assert.deepEqual(outcomes.map(Boolean), [true, false, false, false, true, false, true])
    assert.deepEqual(await repository.find(plant(1n).id), { plant: plant(1n, 'f'), version: outcomes[6] })
  },
}
