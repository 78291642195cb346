import { readFileSync, writeFileSync } from 'node:fs'
import { isInstalled } from '@plant-store/harness'
import { needs } from '@plant-store/harness/vitest'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Place } from '../place.ts'
import { addProgram, runBlock } from './pages.ts'

let place: Place
beforeEach(() => {
  place = new Place()
  addProgram(place)
})
afterEach(() => place[Symbol.asyncDispose]())

/** Runs a block that must succeed. */
function runs(words: string): string {
  const { status, stdout, stderr } = runBlock(place, words)
  expect(status, stderr).toBe(0)
  return stdout
}

describe('a recipe of docs/commands.md', () => {
  test('renames a tag, and changes no name', async () => {
    await place.session(`
      $ import -
      < {"id":1,"name":"Mint","tag":"herb"}
      < {"id":2,"name":"a\\",\\"tag\\":\\"herb\\"}","tag":"herb"}
      < {"id":3,"name":"a\\",\\"tag\\":\\"herb\\"}","tag":"tree"}
      3 plants…`)

    runs('"tag":"herbs"')

    await place.session(`
      $ export
      {"id":1,"name":"Mint","tag":"herbs"}
      {"id":2,"name":"a\\",\\"tag\\":\\"herb\\"}","tag":"herbs"}
      {"id":3,"name":"a\\",\\"tag\\":\\"herb\\"}","tag":"tree"}
      ! 3 plants…`)
  })

  test('removes a tag, and keeps its plants', async () => {
    await place.session(`
      $ import -
      < {"id":1,"name":"Ivy","tag":"climber"}
      < {"id":2,"name":"b","tag":"c"}
      2 plants…`)

    runs('"tag":"climber"')

    await place.session(`
      $ export
      {"id":1,"name":"Ivy"}
      {"id":2,"name":"b","tag":"c"}
      ! 2 plants…`)
  })

  test('removes the plants of a tag while a server runs', async () => {
    const lines = Array.from({ length: 3_000 }, (_, n) => `${n},Thistle,weed\n`)
    await place.run('import -', `id,name,tag\n${lines.join('')}`)
    const server = await place.serve()
    await place.run('import -', 'id,name\n5000,a\n')

    const printed = runs('--tag weed')

    expect(printed).toMatch(/^3,000 plants removed/)
    expect(await server.request('/plants/7')).toBe(404)
    expect(await server.request('/plants/5000')).toBe(200)
  })

  test('takes one plant out of a backup', async () => {
    await place.session(`
      $ import -
      < id,name
      < 7,before
      < 77,before
      2 plants…
      $ backup plants.backup
      plants.backup: …
      $ import - --replace
      < id,name
      < 7,after
      < 77,after
      2 plants…`)

    runs('"id":7,')

    await place.session(`
      $ export
      {"id":7,"name":"before"}
      {"id":77,"name":"after"}
      ! 2 plants…`)
  })

  test('begins again with the same tokens', async () => {
    await place.run('import -', 'id,name\n1,a\n')
    await place.run('token create --name shop')

    runs('before.backup')

    expect(await place.counts()).toMatchObject({ plants: 0, tokens: 1 })
  })

  const jq = needs('jq', isInstalled('jq'))

  test('imports rejected lines of NDJSON again', jq, async () => {
    await place.run('import - --rejects plants.ndjson.rejects.ndjson', '{x\n{"id":"é"}\n')

    const { status, stdout } = runBlock(place, 'jq -r')

    expect(status).toBe(3)
    expect(stdout).toMatch(/2 lines rejected, see corrected.ndjson.rejects.ndjson\n$/)
  })

  test('imports rejected lines of CSV again', async () => {
    const path = place.path('plants.csv.rejects.csv')
    await place.run(`import - --rejects ${path}`, 'id,name\n1,a\nx,b\n')
    writeFileSync(path, readFileSync(path, 'utf8').replace('x,b', '2,b'))

    expect(runs('import plants.csv.rejects.csv')).toMatch(/^1 plant imported/)
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
