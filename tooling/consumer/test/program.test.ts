import { execFileSync } from 'node:child_process'
import { existsSync, globSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { launch, startServer } from '@plant-store/harness'
import { bunProgram, fetchBun } from '@plant-store/harness/bun'
import { fetchNode, nodeProgram } from '@plant-store/harness/nodes'
import { needs, temporaryFolder } from '@plant-store/harness/vitest'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { pnpmCommand, run } from '../src/run.ts'

const { program } = inject('installed')
const { CI, PATH = '', HOME = '' } = process.env

type Command = readonly [string, ...string[]]

interface PackageManager {
  readonly name: string
  readonly add: Command
  /** Runs the command that a package brings. */
  readonly exec: Command
  /** The same for a process that a signal is to reach, which npx keeps to itself. */
  readonly start?: Command
  /** Whether packages stay in archives, where nobody can look at them. */
  readonly isPlugAndPlay?: boolean
  readonly when?: ReturnType<typeof needs>
}

const yarn = [
  process.execPath,
  createRequire(import.meta.url).resolve('@yarnpkg/cli-dist/bin/yarn.js'),
] as const
// CI tests everything; others have Bun once `pnpm bench` has fetched it.
if (CI) fetchBun()
const managers: readonly PackageManager[] = [
  {
    name: 'npm',
    add: ['npm', 'install', '--no-audit', '--no-fund', '--loglevel=error'],
    exec: ['npx', 'plant-store'],
    start: ['node_modules/.bin/plant-store'],
  },
  { name: 'pnpm', add: [...pnpmCommand, 'add'], exec: [...pnpmCommand, 'exec', 'plant-store'] },
  { name: 'yarn', add: [...yarn, 'add'], exec: [...yarn, 'plant-store'], isPlugAndPlay: true },
  {
    name: 'bun',
    add: [bunProgram, 'add'],
    exec: [bunProgram, 'x', 'plant-store'],
    when: needs('Bun (`pnpm bench` fetches it)', existsSync(bunProgram)),
  },
]
// Yarn reads no settings of npm's.
const { registry, cafile } = JSON.parse(
  execFileSync('npm', ['config', 'list', '--json'], { encoding: 'utf8' }),
)
Object.assign(process.env, {
  YARN_ENABLE_TELEMETRY: 'false',
  YARN_ENABLE_IMMUTABLE_INSTALLS: 'false',
  YARN_NPM_REGISTRY_SERVER: registry,
  YARN_UNSAFE_HTTP_WHITELIST: new URL(registry).hostname,
  ...(cafile && { YARN_HTTPS_CA_FILE_PATH: cafile }),
})

describe.each(managers)('with $name', ({ name, add, exec, start = exec, isPlugAndPlay, when = {} }) => {
  test('an empty folder serves plants after one command', when, async () => {
    const folder = temporaryFolder()
    // Yarn works in a project only.
    if (isPlugAndPlay) await writeFile(join(folder, 'package.json'), '{"private":true}')
    const [file, ...args] = add
    await run(file, [...args, `plant-store@file:${program.tarball}`], folder)
    if (!isPlugAndPlay) {
      const packages = installedIn(folder)
      expect(packages.map(each => each.name).sort()).toEqual([
        'better-sqlite3',
        'node-addon-api',
        'plant-store',
      ])
      expect(packages.filter(({ runsAtInstall }) => runsAtInstall)).toEqual([])
      const megabytes = packages.map(each => `${each.name} ${(each.bytes / 1e6).toFixed(1)} MB`)
      console.log(`${name}: ${packages.length} packages, ${megabytes.join(', ')}`)
    }

    const plantStore = (...more: string[]) => run(exec[0], [...exec.slice(1), ...more], folder)
    const token = (await plantStore('token', 'create', '--name', 'shop')).trim()
    const environment = { PATH, HOME }
    await using server = await startServer({ folder, environment, command: [...start, 'serve'] })
    await createAndRead(server.url, token)
    expect(await plantStore('export')).toBe('{"id":9007199254740993,"name":"Monstera"}\n')
    expect((await fetch(`${server.url}/docs/swagger-ui-bundle.js`)).status).toBe(200)
    expect(await server.end()).toBe(0)
  })
})

async function createAndRead(url: string, token: string): Promise<void> {
  const authorization = `Bearer ${token}`
  const created = await fetch(`${url}/plants`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: '{"id": 9007199254740993, "name": "Monstera"}',
  })
  expect([created.status, await created.text()]).toEqual([200, '{"name":"Monstera"}'])
  const read = await fetch(`${url}/plants/9007199254740993`, { headers: { authorization } })
  expect(await read.text()).toBe('{"id":9007199254740993,"name":"Monstera"}')
}

function installedIn(folder: string) {
  const manifests = globSync('node_modules/{,.pnpm/*/node_modules/}*/package.json', { cwd: folder })
  return [...new Set(manifests.map(path => dirname(realpathSync(join(folder, path)))))].map(path => {
    const { name, scripts = {}, gypfile } = JSON.parse(readFileSync(join(path, 'package.json'), 'utf8'))
    const files = globSync('**', { cwd: path }).map(file => statSync(join(path, file)))
    return {
      name: name as string,
      runsAtInstall:
        Object.keys(scripts).some(script => /^(pre|post)?install$/.test(script)) ||
        // Package managers build such a package unless it says no.
        (existsSync(join(path, 'binding.gyp')) && gypfile !== false),
      bytes: files.reduce((sum, file) => sum + (file.isFile() ? file.size : 0), 0),
    }
  })
}

describe('of the versions of Node', () => {
  const tooOld = ['18.20.8', '20.0.0', '22.0.0']
  const oldest = '24.0.0'
  const all = [...tooOld, oldest]
  if (CI) all.forEach(fetchNode)
  const fetched = needs(
    'older versions of Node (CI fetches them)',
    all.every(each => existsSync(nodeProgram(each))),
  )
  let main: string
  beforeAll(async () => {
    const folder = join(inject('installed').folder, '../program')
    await run(
      'npm',
      ['install', '--prefix', folder, '--no-audit', '--no-fund', '--loglevel=error', program.tarball],
      '.',
    )
    main = join(folder, 'node_modules/plant-store/dist/main.js')
  })

  test.each(tooOld)('%s gets one line that says which one is needed', fetched, async version => {
    await using started = launch([nodeProgram(version), main, 'serve'])
    expect(await started.ended).toBe(1)
    expect({ stdout: started.output(), stderr: started.errors() }).toEqual({
      stdout: '',
      stderr: `plant-store: Node ${version} is too old; install Node 24 or later\n`,
    })
  })

  const enough = [
    { version: oldest, node: nodeProgram(oldest), when: fetched },
    { version: process.versions.node, node: process.execPath },
  ]
  for (const { version, node, when = {} } of enough) {
    test(`${version} serves`, when, async () => {
      const environment = { ACCESS_TOKENS: 'given' }
      const command = [node, main, 'serve'] as const
      await using server = await startServer({ folder: temporaryFolder(), environment, command })
      await createAndRead(server.url, 'given')
      expect(await server.end()).toBe(0)
      expect(server.errors()).toBe('')
    })
  }
})
