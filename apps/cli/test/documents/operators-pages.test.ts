import { spawnSync } from 'node:child_process'
import { copyFileSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isInstalled, until } from '@plant-store/harness'
import type { TestDatabase } from '@plant-store/harness/postgres'
import { createTestSchema, needs, temporaryFolder } from '@plant-store/harness/vitest'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { Place } from '../place.ts'
import { addProgram, block, docs, documents, runBlock } from './pages.ts'

let place: Place
beforeEach(() => {
  place = new Place()
  addProgram(place)
})
afterEach(() => place[Symbol.asyncDispose]())

/** Returns what a block prints that succeeds without a word of warning. */
function runs(words: string, replaced: Readonly<Record<string, string>> = {}): string {
  const { status, stdout, stderr } = runBlock(place, words, replaced)
  expect({ status, stderr }, words).toEqual({ status: 0, stderr: '' })
  return stdout
}

/** The files in folders that have this text in their bytes. */
function filesWith(text: string, ...folders: readonly string[]): readonly string[] {
  const files = folders.flatMap(folder =>
    readdirSync(place.path(folder)).map(name => join(place.path(folder), name)),
  )
  return files.filter(file => readFileSync(file).includes(text))
}

test('a backup and its restore work, and so does a rollback', async () => {
  await place.createStore(10)
  runs('backup plants.backup')
  copyFileSync(place.path('plants.backup'), place.path('before-upgrade.backup'))
  for (const restore of ['restore plants.backup', 'restore before-upgrade.backup']) {
    await place.load(10, 10)
    runs(restore)
    expect(await place.counts(), restore).toMatchObject({ plants: 10 })
  }
})

const sqlite = needs('sqlite3', isInstalled('sqlite3'))

test('a file becomes smaller, and keeps what is in it', sqlite, async () => {
  await place.createStore(1_000)
  await place.run('export plants.ndjson')
  await place.run('remove plants.ndjson')
  const bytes = () => statSync(place.store).size
  const before = bytes()

  runs('plants.db vacuum', { '/var/lib/plant-store/plants.db': place.store })

  expect(bytes()).toBeLessThan(before / 2)
  expect(await place.counts()).toMatchObject({ plants: 0 })
})

test('backups of each night, of days and of weeks are made', async () => {
  await place.createStore(10)

  runs('backup --keep 14 /backup\n', { '/backup': 'backups' })
  runs('backup --keep 7', { '/backup': 'backups' })

  const names = readdirSync(place.path('backups'), { recursive: true }).map(String)
  const ends = names.map(name => name.replace(/[^/]*\.backup$/, '*')).sort()
  expect(ends).toEqual(['*', 'daily', 'daily/*', 'weekly', 'weekly/*'])
  // The units of the release folder are that command.
  const unit = readFileSync(new URL('../deploy/plant-store-backup.service', docs), 'utf8')
  expect(unit).toMatch(
    /^ExecStart=\/opt\/plant-store\/bin\/plant-store backup --keep 14 \/var\/lib\/plant-store-backups$/m,
  )
})

const gpg = needs('gpg', isInstalled('gpg'))

test('an encrypted copy is sent away, and read with the secret key', gpg, async () => {
  await place.createStore(10)
  await place.run('backup --keep 7 backup/daily')
  // gpg makes sockets there, whose paths must be short.
  const home = temporaryFolder()
  const environment = { GNUPGHOME: home }
  const end = 'rm newest.gpg'
  const sends = {
    '/backup': 'backup',
    'scp newest.gpg backups@elsewhere.example:': 'cp newest.gpg sent-',
    [end]: '',
  }

  const made = runBlock(place, '--quick-generate-key', {}, environment)
  const sent = runBlock(place, '--recipient-file', sends, environment)
  const tried = runBlock(place, '--decrypt newest.gpg', {}, environment)

  spawnSync('gpgconf', ['--kill', 'all'], { env: { ...process.env, ...environment } })
  expect(made.status, made.stderr).toBe(0)
  expect(sent.status, sent.stderr).toBe(0)
  expect(tried.stdout, tried.stderr).toMatch(/tried\.backup: 10 plants.*: intact\n$/)
})

test('a script creates a token before the first start', async () => {
  const { status } = runBlock(place, 'import - < /dev/null')

  const token = readFileSync(place.path('deploy.token'), 'utf8').trim()
  const server = await place.serve()
  expect(status).toBe(0)
  expect(await server.request('/plants', token)).toBe(200)
})

test('what a person wrote is erased from the store and its backups', async () => {
  await place.createStore(10)
  await place.run('import -', '{"id":77,"name":"planted by Ada Lovelace"}\n')
  await place.run('backup --keep 14 backup')
  const filesBefore = filesWith('Ada Lovelace', 'data', 'backup')

  runs('remove found.ndjson')
  runs('backup --keep 1 /backup', { '/backup': 'backup' })

  expect(filesBefore).toHaveLength(2)
  expect(filesWith('Ada Lovelace', 'data', 'backup')).toEqual([])
  expect(await place.counts()).toMatchObject({ plants: 10 })
})

test('what can be read of a damaged store is added to the last backup', async () => {
  await place.createStore(500)
  await place.run('backup last.backup')
  await place.load(500, 500)
  const bytes = readFileSync(place.store)
  // A page of plants that the backup has.
  const page = Math.floor(bytes.indexOf('plant 100x') / 4096)
  bytes.fill(0xff, page * 4096, (page + 1) * 4096)
  writeFileSync(place.store, bytes)

  const exported = runBlock(place, 'export --damaged')
  const path = /\/var\/lib\/plant-store-backups\/\S+\.backup/.exec(documents)?.[0] ?? ''
  runs('import --replace saved.ndjson', { [path]: 'last.backup' })

  expect(exported.stderr).toMatch(/ exported in \ds; \d+ others could not be read\n$/)
  expect(exported.status).toBe(3)
  expect(await place.counts()).toMatchObject({ plants: 1_000 })
})

test(
  'Prometheus gets its token and its configuration',
  needs('promtool', isInstalled('promtool')),
  async () => {
    await place.createStore()
    const folders = {
      '/opt/plant-store': fileURLToPath(new URL('../deploy', docs)),
      // The user of a package of Prometheus.
      '-o prometheus ': '',
      '/etc/prometheus': place.folder,
    }
    expect(runBlock(place, '--scope metrics', folders)).toMatchObject({ status: 0 })
    expect(statSync(place.path('plant-store.token')).mode & 0o777).toBe(0o600)
    const config = place.path('prometheus.yml')
    writeFileSync(config, block('yaml', '# prometheus.yml'))
    const { status, stdout } = spawnSync('promtool', ['check', 'config', config], {
      encoding: 'utf8',
    })
    expect(status).toBe(0)
    expect(stdout).toMatch(/SUCCESS: \d+ rules found/)
  },
)

test('a token is created beside the server, and rotated', async () => {
  const server = await place.serve()
  const statusOf = (token: string) => server.request('/plants', token)

  const created = runBlock(place, 'token create --name operator --scope write')
  const first = created.stdout.trim()
  const firstStatus = await statusOf(first)
  const rotated = runBlock(place, 'token revoke operator')
  const [second = ''] = rotated.stdout.split('\n')

  expect([firstStatus, await statusOf(second)]).toEqual([200, 200])
  await until('the first is refused', async () => (await statusOf(first)) === 401)
  const used = /\noperator-2 .* \d{4}-\d\d-\d\d \d\d:\d\dZ\n$/
  await until('its use is listed', async () =>
    used.test((await place.run('token list')).stdout),
  )
})

describe('on PostgreSQL', () => {
  let database: TestDatabase
  let inDatabase: Place
  beforeEach(async () => {
    database = await createTestSchema()
    inDatabase = new Place(database.url)
    addProgram(inDatabase)
  })
  afterEach(async () => {
    await inDatabase[Symbol.asyncDispose]()
    await database[Symbol.asyncDispose]()
  })

  const hasPrograms = isInstalled('sqlite3') && isInstalled('psql')
  const programs = needs('sqlite3 or psql', hasPrograms)

  test('tokens are copied, and clients keep theirs', programs, async () => {
    await place.createStore()
    await place.run('token create --name shop --expires 90d')
    await place.run(['token', 'create', '--name', 'übergabe', '--scope', 'metrics'])
    await inDatabase.run('import -')

    runs('select * from access_tokens', {
      'data/plant-store.db': place.store,
      'postgres://plants:secret@db-one:5432/plants': database.url,
    })

    const stored = await place.run('token list --json')
    expect(await inDatabase.run('token list --json')).toEqual(stored)
  })

  test('removed plants are erased from their pages', programs, async () => {
    await inDatabase.run('import -')
    const added = await inDatabase.run('webhook add https://hooks.example --json')
    await inDatabase.run('import -', '{"id":77,"name":"planted by Ada Lovelace"}\n')
    await inDatabase.run('remove -', '{"id":77}\n')
    await inDatabase.run(['webhook', 'remove', JSON.parse(added.stdout).id])
    const bytes = () =>
      database.query(
        "select pg_relation_size('plants')::int as plants, pg_relation_size('outbox')::int as outbox",
      )
    const before = await bytes()

    const { status, stderr } = runBlock(inDatabase, 'vacuum full plants')

    expect(status, stderr).toBe(0)
    expect(before).toEqual([{ plants: 8192, outbox: 8192 }])
    expect(await bytes()).toEqual([{ plants: 0, outbox: 0 }])
  })
})

test('the pages name the release by its version', () => {
  const named = [...documents.matchAll(/\bplant-store[-:](\d+\.\d+\.\d+)\b/g)].map(
    ([, version]) => version,
  )
  expect(named.length).toBeGreaterThan(4)
  expect(new Set(named)).toEqual(new Set([manifest.version]))
  const readme = readFileSync(new URL('../README.md', docs), 'utf8')
  expect(readme.replaceAll(/\s+/g, ' ')).toContain(
    `Version ${manifest.version} is complete`,
  )
})
