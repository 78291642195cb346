import { readdirSync, readFileSync, statSync } from 'node:fs'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Place } from './place.ts'

let place: Place
beforeEach(() => {
  place = new Place()
})
afterEach(() => place[Symbol.asyncDispose]())

test('an exported file is exact, and is replaced only with --force', async () => {
  const plants = '{"id":-5,"name":"a \\"b\\""}\n{"id":1,"name":"c","tag":""}\n'
  await place.run('import -', plants)

  await place.session(`
    $ export plants.ndjson
    2 plants exported in …s
    $ export plants.ndjson
    ! plant-store: plants.ndjson already exists: use --force to replace it
    [1]`)
  const written = readFileSync(place.path('plants.ndjson'), 'utf8')
  await place.session(`
    $ export plants.ndjson --format csv --force --json
    {"exported":2,…,"format":"csv","file":"plants.ndjson"}`)

  expect(written).toBe(plants)
  expect(readFileSync(place.path('plants.ndjson'), 'utf8')).toBe(
    'id,name,tag\n-5,"a ""b""",\n1,c,""\n',
  )
  const { mode } = statSync(place.path('plants.ndjson'))
  expect(mode & 0o777).toBe(0o666 & ~process.umask())
  expect(readdirSync(place.folder)).toEqual(['data', 'plants.ndjson'])
})

test('standard output has the plants of a store in a file called -', async () => {
  await using other = new Place('file:./-')

  await other.session(`
    $ import -
    < {"id":1,"name":"a"}
    1 plant imported in …s (…/s)
    $ token create --name shop
    plantstore_…
    ! The token of shop …
    $ export
    {"id":1,"name":"a"}
    ! 1 plant exported in …s; 1 token not included: a backup has them
    $ export --json
    {"id":1,"name":"a"}
    ! {"exported":1,…"withoutTokens":1,…,"format":"ndjson","file":null}`)
})

test('an export that fails says so in one line and leaves nothing', async () => {
  await place.createStore()

  await place.session(`
    $ export no/such/folder.csv
    ! plant-store: no/such/folder.csv: no such file or folder
    [1]
    $ export data
    ! plant-store: …data is a folder…
    [1]
    $ export data/../data/store.db-wal --force
    ! plant-store: data/../data/store.db-wal is the store itself
    [1]
    $ export --format xml
    ! plant-store: …Allowed choices are ndjson, csv. (see --help)
    [2]
    $ export a b
    ! plant-store: too many arguments…
    [2]`)

  expect(readdirSync(place.folder)).toEqual(['data'])
})

test('no command but import makes a store', async () => {
  const commands = ['export', 'check', 'backup b', 'remove -', 'token list']
  for (const args of [...commands, 'webhook list', 'token revoke x']) {
    await place.session(`
      $ ${args}
      ! plant-store: there is no store at ${place.store}: set DATABASE_URL, change to the folder of the server, or start the server first
      [1]`)
  }

  expect(readdirSync(place.folder)).toEqual([])
})

test('a DATABASE_URL that is none is wrong usage', async () => {
  await using other = new Place('data/store.db')

  await other.session(`
    $ check
    ! plant-store: DATABASE_URL must …
    [2]`)
})
