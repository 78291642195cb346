import { readdirSync, readFileSync, statSync } from 'node:fs'
import { type Plant, parsePlant } from '@plant-store/domain'
import { openStorage } from '@plant-store/persistence'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Place } from './place.ts'

let place: Place
beforeEach(() => {
  place = new Place()
})
afterEach(() => place[Symbol.asyncDispose]())

async function load(plants: readonly Plant[]) {
  await using storage = await openStorage({ url: place.url })
  await storage.plants.saveAll(plants)
}

const some = Array.from({ length: 500 }, (_, n) =>
  parsePlant({ id: BigInt(n), name: `plant ${n}`, tag: 'x' }),
)

test('an exported file is exact, and is replaced only with --force', async () => {
  await load([
    parsePlant({ id: -5n, name: 'a "b"' }),
    parsePlant({ id: 2n ** 63n - 1n, name: 'c', tag: '' }),
  ])
  expect(await place.run('export plants.ndjson')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^2 plants exported in \d+s\n$/),
    stderr: '',
  })
  expect(readFileSync(place.path('plants.ndjson'), 'utf8')).toBe(
    '{"id":-5,"name":"a \\"b\\""}\n{"id":9223372036854775807,"name":"c","tag":""}\n',
  )
  expect(statSync(place.path('plants.ndjson')).mode & 0o777).toBe(
    0o666 & ~process.umask(),
  )
  const exists =
    /^plant-store: plants.ndjson already exists: use --force to replace it\n$/
  await place.fails('export plants.ndjson', 1, exists)
  const { stdout } = await place.run('export plants.ndjson --format csv --force --json')
  expect(JSON.parse(stdout)).toMatchObject({
    exported: 2,
    format: 'csv',
    file: 'plants.ndjson',
  })
  expect(readFileSync(place.path('plants.ndjson'), 'utf8')).toBe(
    'id,name,tag\n-5,"a ""b""",\n9223372036854775807,c,""\n',
  )
  expect(readdirSync(place.folder).sort()).toEqual(['data', 'plants.ndjson'])
})

test('standard output has the plants and nothing else', async () => {
  await load(some)
  const { code, stdout, stderr } = await place.run('export --json')
  expect(code).toBe(0)
  expect(stdout.split('\n')).toHaveLength(501)
  const { exported, format, file, seconds, ...without } = JSON.parse(stderr)
  expect({ exported, format, file }).toEqual({
    exported: 500,
    format: 'ndjson',
    file: null,
  })
  expect(seconds).toEqual(expect.any(Number))
  const { plants: _, ...others } = await place.counts()
  expect(without).toMatchObject({ withoutTokens: 0 })
  expect(Object.values(without)).toEqual(Object.values(others))
})

test('a store in a file called - is exported', async () => {
  await using other = new Place('file:./-')
  await other.run('import -')
  await other.run('token create --name shop')
  expect((await other.run('export')).stderr).toMatch(
    /^0 plants exported in \d+s; 1 token not included: a backup has them\n$/,
  )
  await place.fails('export a', 1, /there is no store/)
})

test('a reader that leaves ends an export without a word', async () => {
  await load(
    Array.from({ length: 20_000 }, (_, n) =>
      parsePlant({ id: BigInt(n), name: 'x'.repeat(100) }),
    ),
  )
  const { process: program, result } = place.start('export')
  let chunks = 0
  program.stdout?.on('data', () => {
    chunks++
    if (chunks === 20) {
      program.stdout?.destroy()
    }
  })
  expect(await result).toMatchObject({ code: 141, stderr: '' })
})

test('an export that fails says so in one line and loses nothing', async () => {
  await load(some)
  await place.fails(
    'export no/such/folder.csv',
    1,
    /^plant-store: no\/such\/folder.csv: no such file or folder\n$/,
  )
  await place.fails('export data', 1, /data is a folder/)
  await place.fails('export data/../data/store.db-wal --force', 1, /is the store itself/)
  await place.fails('export --format xml', 2, /Allowed choices are ndjson, csv/)
  await place.fails('export a b', 2, /too many arguments/)
  expect(await place.count()).toBe(500)
  expect(readdirSync(place.folder)).toEqual(['data'])
})

test('no command but import makes a store', async () => {
  const listed = ['export', 'check', 'backup b', 'remove -', 'token list', 'webhook list']
  for (const args of [...listed, 'token create --name x', 'token revoke x']) {
    const advice =
      'set DATABASE_URL, change to the folder of the server, or start the server first'
    await place.fails(
      args,
      1,
      new RegExp(`^plant-store: there is no store at ${place.store}: ${advice}\n$`),
    )
  }
  expect(readdirSync(place.folder)).toEqual([])
})

test('a DATABASE_URL that is none is wrong usage', async () => {
  await using other = new Place('data/store.db')

  await other.fails('check', 2, /^plant-store: DATABASE_URL must .*\n$/)
})
