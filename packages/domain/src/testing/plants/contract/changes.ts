import assert from 'node:assert/strict'
import { int64Max } from '../../../values.ts'
import { edgeIds, texts } from '../../samples.ts'
import type { PlantRepositoryCase } from '../contract.ts'
import { fullPlant, idsOf, plant, plantId } from '../samples.ts'
import { allPlants, firstIds, storedPlant } from './stored.ts'

/** Promises of changes that depend on no version. */
export const changes: Readonly<Record<string, PlantRepositoryCase['run']>> = {
  async 'keeps the whole int64 range exactly, in numeric order'(repository) {
    const textualOrder = edgeIds.map(String).sort().toReversed().map(BigInt)
    for (const id of textualOrder) {
      const outcome = await repository.insert(plant(id))
      assert.equal(outcome, 'inserted', `insert of ${id}`)
    }

    for (const id of edgeIds) {
      assert.deepEqual(await storedPlant(repository, id), plant(id), `find ${id}`)
    }
    assert.deepEqual(idsOf(await allPlants(repository)), edgeIds)
  },
  async 'keeps every text as it was given, in every member'(repository) {
    const plants = texts.map((text, index) => fullPlant(BigInt(index), text))
    for (const each of plants) {
      await repository.insert(each)
    }

    assert.deepEqual(await allPlants(repository), plants)
    for (const each of plants) {
      const stored = await storedPlant(repository, each.id)
      assert.deepEqual(stored, each, `find ${each.id}`)
    }
  },
  async 'refuses a taken id and changes nothing'(repository) {
    await repository.insert(fullPlant(7n, 'first'))

    assert.equal(await repository.insert(plant(7n, 'second')), 'id-taken')
    assert.equal(await repository.insert(fullPlant(7n, 'first')), 'id-taken')
    assert.deepEqual(await storedPlant(repository, 7n), fullPlant(7n, 'first'))
  },
  async 'lets exactly one of twenty racing inserts win'(repository) {
    const racers = firstIds(20).map(n => plant(int64Max, `racer ${n}`))
    const outcomes = await Promise.all(racers.map(racer => repository.insert(racer)))

    const winners = racers.filter((_, index) => outcomes[index] === 'inserted')
    assert.equal(winners.length, 1, `${outcomes}`)
    assert.deepEqual(await storedPlant(repository, int64Max), winners[0])
  },
  async 'returns the outcome of each of many concurrent changes'(repository) {
    await repository.insert(plant(50n, 'was here'))
    const ids = firstIds(100)
    const outcomes = await Promise.all(ids.map(id => repository.insert(plant(id))))

    const expected = ids.map(id => (id === 50n ? 'id-taken' : 'inserted'))
    assert.deepEqual(outcomes, expected)
    assert.equal((await allPlants(repository)).length, 100)
  },
  async 'reports whether it removed, and frees the id'(repository) {
    await repository.insert(plant(1n, 'a'))

    assert.equal(await repository.remove(plantId(1n)), true)
    assert.equal(await repository.find(plantId(1n)), undefined)
    assert.equal(await repository.remove(plantId(1n)), false)
    assert.equal(await repository.insert(plant(1n, 'again')), 'inserted')
    assert.deepEqual(await allPlants(repository), [plant(1n, 'again')])
  },
  async 'saves by creating and by replacing, and shows it to every reader'(repository) {
    for (const n of firstIds(20)) {
      await repository.save(plant(1n, `state ${n}`))
      const stored = await storedPlant(repository, 1n)
      assert.deepEqual(stored, plant(1n, `state ${n}`), `save ${n}`)
    }
    await repository.save(plant(1n, 'b'))
    await repository.save(plant(1n, 'b'))
    assert.deepEqual(await allPlants(repository), [plant(1n, 'b')])

    await repository.save(fullPlant(1n, 'every member'))
    assert.deepEqual(await storedPlant(repository, 1n), fullPlant(1n, 'every member'))
    await repository.save(plant(1n, 'no tag'))
    assert.deepEqual(await storedPlant(repository, 1n), plant(1n, 'no tag'))
  },
  async 'tells racing saves, inserts and removals apart'(repository) {
    const rounds = firstIds(20).map(async n => {
      const inserted = repository.insert(plant(1n, `insert ${n}`))
      const saved = repository.save(plant(1n, `save ${n}`))
      const removed = repository.remove(plantId(1n))
      return [(await inserted) === 'inserted', (await saved).created, await removed]
    })
    const outcomes = await Promise.all(rounds)

    // The id is taken and freed in turns.
    const creations = outcomes.filter(([inserted]) => inserted).length
    const creatingSaves = outcomes.filter(([, created]) => created).length
    const removals = outcomes.filter(([, , removed]) => removed).length
    const isLeft = (await repository.find(plantId(1n))) !== undefined
    assert.equal(creations + creatingSaves, removals + Number(isLeft), `${outcomes}`)
  },
  async 'inserts many together as one after the other'(repository) {
    await repository.insert(plant(2n, 'was here'))
    const together = [
      plant(3n, 'first'),
      plant(2n, 'too late'),
      fullPlant(1n, 'full'),
      plant(3n, 'second'),
    ]
    const outcomes = await repository.insertAll(together)
    assert.deepEqual(outcomes, ['inserted', 'id-taken', 'inserted', 'id-taken'])
    assert.deepEqual(await repository.insertAll([]), [])

    const more = await repository.insertAll([plant(2n), plant(4n)])
    assert.deepEqual(more, ['id-taken', 'inserted'])
    assert.equal(await repository.remove(plantId(4n)), true)
    assert.deepEqual(await allPlants(repository), [
      fullPlant(1n, 'full'),
      plant(2n, 'was here'),
      plant(3n, 'first'),
    ])
  },
  async 'saves many together as one after the other'(repository) {
    const { version: before } = await repository.save(plant(2n, 'was here'))
    const saved = await repository.saveAll([
      plant(3n, 'first', 'a'),
      fullPlant(2n, 'replaced'),
      plant(1n),
      plant(3n, 'last'),
    ])
    const versions = saved.map(({ version }) => version)
    const [, of2, of1, of3] = versions
    const created = saved.map(each => each.created)
    assert.deepEqual(created, [true, false, true, false])

    const ids = [1n, 2n, 3n].map(plantId)
    const stored = await Promise.all(ids.map(id => repository.find(id)))
    assert.deepEqual(stored, [
      { plant: plant(1n), version: of1 },
      { plant: fullPlant(2n, 'replaced'), version: of2 },
      { plant: plant(3n, 'last'), version: of3 },
    ])
    assert.equal(new Set([before, ...versions]).size, 5, `${versions}`)
    assert.deepEqual(await repository.saveAll([]), [])

    const more = await repository.saveAll([plant(1n, 'again'), plant(4n)])
    assert.deepEqual(
      more.map(each => each.created),
      [false, true],
    )
    assert.deepEqual(await storedPlant(repository, 1n), plant(1n, 'again'))
    assert.deepEqual(await storedPlant(repository, 4n), plant(4n))
  },
}
