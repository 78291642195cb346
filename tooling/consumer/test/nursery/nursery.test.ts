import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { createPlantClient, RefusedError } from '@plant-store/client'
import { type Plant, plantIdMax, plantIdMin } from '@plant-store/domain'
import { fullPlant, plantRepositoryContract } from '@plant-store/domain/testing'
import { openStorage } from '@plant-store/persistence'
import { openJournal } from './journal.ts'
import { labelOf, readLabel } from './label.ts'
import { createNursery } from './service.ts'

let folder: string
let files = 0
const newFile = () => join(folder, `${files++}.journal`)
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nursery-journal-'))
})
after(() => rm(folder, { recursive: true }))

describe('the journal keeps the contract of a plant repository', () => {
  for (const { name, run } of plantRepositoryContract) {
    test(name, async () => {
      const journal = await openJournal(newFile())
      await run(journal)
      await journal.close()
    })
  }
})

test('the journal has its seedlings when it is opened again', async () => {
  const file = newFile()
  const journal = await openJournal(file)
  const [one, two] = [readLabel(`№ ${plantIdMin} · Fern`), readLabel(`№ ${plantIdMax} · Ficus · tree`)]
  const three = fullPlant(plantIdMax - 1n, 'every member')
  for (const seedling of [one, two, three]) await journal.insert(seedling)
  await journal.remove(one.id)
  await journal.close()
  const again = await openJournal(file)
  assert.deepEqual(await again.page({ limit: 10 }), [three, two])
  await again.close()
})

test('labels follow the rules of the domain', () => {
  assert.equal(labelOf(readLabel('№ 9007199254740993 · Ficus · tree')), '№ 9007199254740993 · Ficus · tree')
  assert.throws(() => readLabel('№ 9223372036854775808 · Ficus'), { code: 'invalid-plant' })
  assert.throws(() => readLabel('Ficus'), { code: 'invalid-plant' })
})

test('the service serves seedlings under its own prefix, with its own store and its own gate', async () => {
  const journal = await openJournal(newFile())
  const app = createNursery(journal, new Map([['secret-of-flora', 'Flora']]))
  const origin = await app.listen({ host: '127.0.0.1', port: 0 })
  try {
    const flora = createPlantClient({ baseUrl: `${origin}/seedlings`, token: 'secret-of-flora' })
    const ids = [plantIdMin, 2n ** 53n + 1n, plantIdMax]
    for (const id of ids) await flora.create({ id, name: `seedling ${id}` })
    const listed: Plant[] = []
    for await (const page of flora.pages({ limit: 1 })) listed.push(...page)
    assert.deepEqual(listed, await journal.page({ limit: 10 }))
    assert.deepEqual(
      listed.map(({ id }) => id),
      ids,
    )

    const authorization = 'Bearer secret-of-flora'
    const { headers } = await fetch(`${origin}/seedlings/plants`, { headers: { authorization } })
    assert.equal(headers.get('x-gardener'), 'Flora')

    const stranger = createPlantClient({ baseUrl: `${origin}/seedlings`, token: 'guess' })
    await assert.rejects(stranger.list(), (error: unknown) => {
      assert.ok(error instanceof RefusedError)
      assert.deepEqual([error.status, error.number, error.message], [401, 40102, 'no gardener of ours'])
      return true
    })

    const label = await fetch(`${origin}/labels/${plantIdMax}`)
    assert.equal(await label.text(), `№ ${plantIdMax} · seedling ${plantIdMax}`)
    const none = await fetch(`${origin}/labels/5`)
    assert.deepEqual([none.status, await none.json()], [404, { nursery: 'there is no plant with id 5' }])
  } finally {
    await app.close()
    await journal.close()
  }
})

test('the packages bring a store too, with the same contract', async () => {
  const storage = await openStorage({ url: `file:${newFile()}` })
  assert.equal(await storage.plants.insert(readLabel('№ 1 · Fern')), 'inserted')
  assert.equal(await storage.plants.insert(readLabel('№ 1 · again')), 'id-taken')
  await storage[Symbol.asyncDispose]()
})
