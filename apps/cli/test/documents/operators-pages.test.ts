import { spawnSync } from 'node:child_process'
import { copyFileSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { isInstalled, until } from '@plant-store/harness'
import { needs } from '@plant-store/harness/vitest'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { Place } from '../place.ts'
import { addProgram, block, docs, documents, runBlock as runBlockIn } from './pages.ts'

let place: Place
beforeEach(() => {
  place = new Place()
  addProgram(place)
})
afterEach(() => place[Symbol.asyncDispose]())

const runBlock = (words: string, replaced: Readonly<Record<string, string>> = {}) =>
  runBlockIn(place, words, replaced)

describe('what the pages for operators say to run works:', () => {
  test('a backup and its restore, and a rollback', async () => {
    await place.load(0, 10)
    expect(runBlock('backup plants.backup')).toMatchObject({ status: 0, stderr: '' })
    copyFileSync(place.path('plants.backup'), place.path('before-upgrade.backup'))
    for (const restore of ['restore plants.backup', 'restore before-upgrade.backup']) {
      await place.load(10, 10)
      expect(runBlock(restore), restore).toMatchObject({ status: 0, stderr: '' })
      expect(await place.count(), restore).toBe(10)
    }
  })

  test('a nightly backup', async () => {
    await place.load(0, 10)
    expect(runBlock('backup --keep', { '/backup': 'backups' })).toMatchObject({
      status: 0,
      stderr: '',
    })
    const [made = ''] = readdirSync(place.path('backups'))
    expect(await place.run(`check backups/${made}`)).toMatchObject({ code: 0 })
    // The units of the release folder are that command.
    const unit = readFileSync(
      new URL('../deploy/plant-store-backup.service', docs),
      'utf8',
    )
    expect(unit).toMatch(
      /^ExecStart=\/opt\/plant-store\/bin\/plant-store backup --keep 14 \/var\/lib\/plant-store-backups$/m,
    )
  })

  test('what can be read of a damaged store is added to the last backup', async () => {
    await place.load(0, 500)
    await place.run('backup last.backup')
    await place.load(500, 500)
    const bytes = readFileSync(place.store)
    // A page of plants that the backup has.
    const page = Math.floor(bytes.indexOf('plant 100 ') / 4096)
    bytes.fill(0xff, page * 4096, (page + 1) * 4096)
    writeFileSync(place.store, bytes)
    const exported = runBlock('export --damaged')
    expect(exported.stderr).toMatch(/ exported in \ds; \d+ others could not be read\n$/)
    expect(exported.status).toBe(3)
    const path = {
      '/var/lib/plant-store-backups/plants.db-2026-11-22T031700Z.backup': 'last.backup',
    }
    expect(runBlock('import --replace saved.ndjson', path)).toMatchObject({
      status: 0,
      stderr: '',
    })
    expect(await place.count()).toBe(1_000)
  })

  test('what Prometheus needs', needs('promtool', isInstalled('promtool')), async () => {
    await place.load(0, 1)
    const folders = {
      '/opt/plant-store': fileURLToPath(new URL('../deploy', docs)),
      // The user of a package of Prometheus.
      '-o prometheus ': '',
      '/etc/prometheus': place.folder,
    }
    expect(runBlock('--scope metrics', folders)).toMatchObject({ status: 0 })
    expect(statSync(place.path('plant-store.token')).mode & 0o777).toBe(0o600)
    const config = place.path('prometheus.yml')
    writeFileSync(config, block('yaml', '# prometheus.yml'))
    const { status, stdout } = spawnSync('promtool', ['check', 'config', config], {
      encoding: 'utf8',
    })
    expect(status).toBe(0)
    expect(stdout).toMatch(/SUCCESS: \d+ rules found/)
  })

  test('a token is created beside the server, and rotated', async () => {
    const server = await place.serve()
    const statusOf = (token: string) => server.request('GET /plants', token)
    const { status, stdout: first } = runBlock(
      'token create --name operator --scope write',
    )
    expect(status).toBe(0)
    expect(await statusOf(first.trim())).toBe(200)
    const { stdout } = runBlock('token revoke operator')
    const [second = ''] = stdout.split('\n')
    expect(await statusOf(second)).toBe(200)
    await until(
      'the first is refused',
      async () => (await statusOf(first.trim())) === 401,
    )
    const used = /\noperator-2 .* \d{4}-\d\d-\d\d \d\d:\d\dZ\n$/
    await until('its use is listed', async () =>
      used.test((await place.run('token list')).stdout),
    )
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
