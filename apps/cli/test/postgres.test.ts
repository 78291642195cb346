import { existsSync } from 'node:fs'
import type { TestDatabase } from '@plant-store/harness/postgres'
import { anySeed } from '@plant-store/harness/random'
import { createTestSchema } from '@plant-store/harness/vitest'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { anyPlants, eachPiece } from './any-plants.ts'
import { Place } from './place.ts'

let database: TestDatabase
let inDatabase: Place
beforeEach(async () => {
  database = await createTestSchema()
  inDatabase = new Place(database.url)
})
afterEach(async () => {
  await inDatabase[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

const seed = anySeed()

test(`a store moved into PostgreSQL and back is the same (seed ${seed})`, async () => {
  await using inFile = new Place()
  await using back = new Place()
  await inFile.save([...anyPlants(seed, 100), ...eachPiece()])

  const csv = await inFile.run('export --format csv')
  const ndjson = await inFile.run('export')
  await inDatabase.run('import -', csv.stdout)
  const movedCsv = await inDatabase.run('export --format csv')
  const movedJson = await inDatabase.run('export')
  await back.run('import -', movedJson.stdout)
  const backJson = await back.run('export')

  const isSame = [movedCsv.stdout === csv.stdout, backJson.stdout === ndjson.stdout]
  expect(isSame).toEqual([true, true])
})

test('a check counts what is in a database, and says what it leaves out', async () => {
  const { username, host, pathname } = new URL(database.url)
  await inDatabase.session(`
    $ import -
    < {"id":1,"name":"a"}
    1 plant imported…
    $ check
    postgres://${username}@${host}${pathname}: 1 plant, …, schema version …: counted; check its pages with pg_amcheck
    $ check --json
    {"store":"postgres://…","schemaVersion":…,"plants":1,…}`)
})

test('a database without a store is refused in one line and left alone', async () => {
  // Another program's, with tables in a schema of their own.
  await database.query('create schema garden; create table garden.notes (line text)')

  await inDatabase.session(`
    $ token list
    ! plant-store: the store postgres://… cannot be opened: it is empty: set DATABASE_URL…
    [1]`)

  const tables = `select table_name from information_schema.tables where table_schema = current_schema()`
  expect(await database.query(tables)).toEqual([])
})

test('a command that fails on PostgreSQL hides the password', async () => {
  await using place = new Place('postgres://me:secret@127.0.0.1:1/plants')
  for (const args of ['export f', 'import -', 'check', 'token list']) {
    await place.session(`
      $ ${args}
      ! plant-store: the store postgres://me@127.0.0.1:1/plants cannot be opened: connect ECONNREFUSED 127.0.0.1:1
      [1]`)
  }
  for (const args of ['backup f --keep 1', 'restore f']) {
    await place.session(`
      $ ${args}
      ! plant-store: postgres://me@127.0.0.1:1/plants is not a file: use pg_dump to back it up, and pg_restore
      [1]`)
  }
  expect(existsSync(place.path('f'))).toBe(false)
})
