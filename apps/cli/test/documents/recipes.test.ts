import { readFileSync, writeFileSync } from 'node:fs'
import { type Plant, parsePlant } from '@plant-store/domain'
import { isInstalled } from '@plant-store/harness'
import { needs } from '@plant-store/harness/vitest'
import { openStorage } from '@plant-store/persistence'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Place } from '../place.ts'
import { addProgram, runBlock } from './pages.ts'

let place: Place
beforeEach(() => {
  place = new Place()
  addProgram(place)
})
afterEach(() => place[Symbol.asyncDispose]())

async function save(...plants: readonly object[]): Promise<void> {
  await using storage = await openStorage({ url: place.url })
  await storage.plants.saveAll(plants.map(plant => parsePlant(plant)))
}

describe('a recipe of docs/commands.md', () => {
  test('renames a tag, and changes no name', async () => {
    const likeTag = 'a","tag":"herb"}'
    await save(
      { id: 1n, name: 'Mint', tag: 'herb' },
      { id: 2n, name: likeTag, tag: 'herb' },
      { id: 3n, name: likeTag, tag: 'tree' },
    )

    const { status } = runBlock(place, '"tag":"herbs"')

    expect(status).toBe(0)
    expect(await place.plants()).toEqual([
      { id: 1n, name: 'Mint', tag: 'herbs' },
      { id: 2n, name: likeTag, tag: 'herbs' },
      { id: 3n, name: likeTag, tag: 'tree' },
    ])
  })

  test('removes a tag, and keeps its plants', async () => {
    const other = { id: 2n, name: 'b', tag: 'c' }
    await save({ id: 1n, name: 'Ivy', tag: 'climber' }, other)

    const { status } = runBlock(place, '"tag":"climber"')

    expect(status).toBe(0)
    expect(await place.plants()).toEqual([{ id: 1n, name: 'Ivy' }, other])
  })

  test('removes the plants of a tag while a server runs', async () => {
    const weeds: Plant[] = []
    for (let id = 0n; id < 3_000n; id++) {
      weeds.push(parsePlant({ id, name: 'Thistle', tag: 'weed' }))
    }
    await save(...weeds)
    const server = await place.serve()
    await server.create(5_000)

    const { status, stdout } = runBlock(place, '--tag weed')

    expect(status).toBe(0)
    expect(stdout).toMatch(/^3,000 plants removed/)
    expect(await server.request('GET /plants/7')).toBe(404)
    expect(await server.request('GET /plants/5000')).toBe(200)
  })

  test('takes one plant out of a backup', async () => {
    await save({ id: 7n, name: 'before' }, { id: 77n, name: 'before' })
    await place.run('backup plants.backup')
    await save({ id: 7n, name: 'after' }, { id: 77n, name: 'after' })

    const { status } = runBlock(place, '"id":7,')

    expect(status).toBe(0)
    expect(await place.plants()).toEqual([
      { id: 7n, name: 'before' },
      { id: 77n, name: 'after' },
    ])
  })

  test('begins again with the same tokens', async () => {
    await save({ id: 1n, name: 'a' })
    await place.run('token create --name shop')

    const { status } = runBlock(place, 'before.backup')

    expect(status).toBe(0)
    expect(await place.counts()).toMatchObject({ plants: 0, tokens: 1 })
  })

  test('imports rejected lines of CSV again', async () => {
    writeFileSync(place.path('plants.csv'), 'id,name\n1,a\nx,b\n')
    await place.run('import plants.csv')
    const path = place.path('plants.csv.rejects.csv')
    const rejects = readFileSync(path, 'utf8')
    writeFileSync(path, rejects.replace('x,b', '2,b'))

    const { status } = runBlock(place, 'import plants.csv.rejects.csv')

    expect(status).toBe(0)
    expect(await place.count()).toBe(2)
  })

  const jq = needs('jq', isInstalled('jq'))

  test('imports rejected lines of NDJSON again', jq, async () => {
    writeFileSync(place.path('plants.ndjson'), '{"id":1,"name":"a"}\n{x\n{"id":"é"}\n')
    await place.run('import plants.ndjson')

    const { status, stdout } = runBlock(place, 'jq -r')

    expect(status).toBe(3)
    expect(stdout).toMatch(/2 lines rejected, see corrected.ndjson.rejects.ndjson\n$/)
  })
})

test('the loop of docs/http.md prints every page as one array', async () => {
  await place.load(0, 5)
  const server = await place.serve()
  const url = `STORE=${server.url} AUTH='Authorization: Bearer given-by-the-environment'\nnext=`

  const { status, stdout, stderr } = runBlock(place, 'while [ -n "$next" ]', {
    "next='": `${url}'`,
    'limit=1000': 'limit=2',
  })

  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  expect(JSON.parse(stdout)).toMatchObject([0, 1, 2, 3, 4].map(id => ({ id })))
})
