import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { hashToken } from '@plant-store/access'
import { isInstalled } from '@plant-store/harness'
import type { TestDatabase } from '@plant-store/harness/postgres'
import { anySeed } from '@plant-store/harness/random'
import { createTestSchema, needs } from '@plant-store/harness/vitest'
import { openStorage } from '@plant-store/persistence'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { anyPlants, eachPiece } from './any-plants.ts'
import { countsInWords, Place } from './place.ts'

let database: TestDatabase
let inFile: Place
let inDatabase: Place
beforeEach(async () => {
  database = await createTestSchema()
  inFile = new Place()
  inDatabase = new Place(database.url)
})
afterEach(async () => {
  await inFile[Symbol.asyncDispose]()
  await inDatabase[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

const scalePage = fileURLToPath(new URL('../../../docs/scale.md', import.meta.url))
const seed = anySeed()

async function exported(place: Place, format: string): Promise<string> {
  const { code, stdout, stderr } = await place.run(`export --format ${format}`)
  expect(code, stderr).toBe(0)
  return stdout
}

test(`a store moved into PostgreSQL and back is the same (seed ${seed})`, async () => {
  const plants = [...anyPlants(seed, 300), ...eachPiece]
  {
    await using storage = await openStorage({ url: inFile.url })
    await storage.plants.saveAll(plants)
  }
  const ndjson = await exported(inFile, 'ndjson')
  const csv = await exported(inFile, 'csv')
  const moved = await inDatabase.run('import - --json', csv)
  expect(moved).toMatchObject({ code: 0, stderr: '' })
  expect(JSON.parse(moved.stdout)).toMatchObject({
    inserted: new Set(plants.map(({ id }) => id)).size,
  })
  expect((await exported(inDatabase, 'csv')) === csv).toBe(true)
  await using back = new Place()
  expect(await back.run('import -', await exported(inDatabase, 'ndjson'))).toMatchObject({
    code: 0,
    stderr: '',
  })
  expect((await exported(back, 'ndjson')) === ndjson).toBe(true)
})

const hasPrograms = isInstalled('sqlite3') && isInstalled('psql')

test(
  'access tokens are copied as the page says, and clients keep theirs',
  needs('sqlite3 or psql', hasPrograms),
  async () => {
    await inFile.createStore()
    const token = (...args: string[]) => inFile.run(['token', ...args])
    const shop = (
      await token('create', '--name', 'shop', '--expires', '90d')
    ).stdout.trim()
    await token('create', '--name', 'übergabe', '--scope', 'metrics')
    // Nobody may believe that the tokens are in an export of the plants.
    expect((await inFile.run('export')).stderr).toMatch(
      /^0 plants exported in \d+s; 2 tokens not included: a backup has them\n$/,
    )
    const json = JSON.parse((await inFile.run('export plants --json')).stdout)
    expect(json).toMatchObject({ withoutTokens: 2 })

    expect((await inDatabase.run('import -', '')).code).toBe(0)
    const [copy = ''] =
      /^sqlite3 [^`]*access_tokens[^`]*/m.exec(readFileSync(scalePage, 'utf8')) ?? []
    const command = copy
      .replace('data/plant-store.db', inFile.store)
      .replace(/postgres:[^']*/, database.url)
    execFileSync('sh', ['-c', command])
    expect((await inDatabase.run('token list --json')).stdout).toBe(
      (await token('list', '--json')).stdout,
    )
    await using storage = await openStorage({ url: database.url })
    expect(await storage.tokens.find(hashToken(shop))).toMatchObject({ name: 'shop' })
  },
)

test('a check counts what is in a database, and says what it leaves out', async () => {
  await inDatabase.run('import -', '{"id":1,"name":"a"}\n')
  await inDatabase.run('token create --name shop')
  const { username, host, pathname } = new URL(database.url)
  const store = `postgres://${username}@${host}${pathname}`
  const counts = countsInWords({ plants: 1, tokens: 1 })
  expect(await inDatabase.run('check')).toEqual({
    code: 0,
    stdout: expect.stringMatching(
      `: ${counts}, schema version \\d+: counted; check its pages with pg_amcheck\n$`,
    ),
    stderr: '',
  })
  expect(JSON.parse((await inDatabase.run('check --json')).stdout)).toEqual({
    store,
    schemaVersion: expect.any(Number),
    ...(await inDatabase.counts()),
    plants: 1,
    tokens: 1,
  })
})

test('a database without a store is refused in one line and left alone', async () => {
  // Another program's, with tables in a schema of their own.
  await database.query('create schema garden; create table garden.notes (line text)')
  for (const command of ['token create --name x', 'token list']) {
    await inDatabase.fails(
      command,
      1,
      /^plant-store: there is no store at postgres:\/\/.*: set DATABASE_URL/,
    )
  }
  const message =
    /^plant-store: the store postgres:\/\/.* cannot be opened: it is empty\n$/
  for (const command of ['export', 'check']) {
    await inDatabase.fails(command, 1, message)
  }
  const tables = `select table_name from information_schema.tables where table_schema = current_schema()`
  expect(await database.query(tables)).toEqual([])
})

test('a command that fails on PostgreSQL hides the password', async () => {
  await using place = new Place('postgres://me:secret@127.0.0.1:1/plants')
  const store = 'postgres://me@127.0.0.1:1/plants'
  const refused = `^plant-store: the store ${store} cannot be opened: connect ECONNREFUSED 127.0.0.1:1\n$`
  for (const args of ['export f', 'import -', 'check', 'token list']) {
    await place.fails(args, 1, new RegExp(refused))
  }
  const notFile = `^plant-store: ${store} is not a file: use pg_dump to back it up, and pg_restore\n$`
  for (const args of ['backup f', 'restore f']) {
    await place.fails(args, 1, new RegExp(notFile))
  }
  expect(existsSync(place.path('f'))).toBe(false)
})

test('who may not write is told why no token can be created', async () => {
  expect((await inDatabase.run('import -', '')).code).toBe(0)
  await using reader = await database.createReader()
  await using reading = new Place(reader.url)
  const denied =
    /^plant-store: the store is unavailable: permission denied for table access_tokens\n$/
  await reading.fails('token create --name shop', 1, denied)
})
