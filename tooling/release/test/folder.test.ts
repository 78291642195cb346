import { spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { freePort, isInstalled, launch, startServer, until } from '@plant-store/harness'
import { needs, temporaryFolder } from '@plant-store/harness/vitest'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { platform } from '../src/folder.ts'
import { copyInto } from '../src/image.ts'
import { librariesOf } from '../src/libraries.ts'
import { run, runIn, writeTar } from '../src/run.ts'
import {
  assertKeepsPlants,
  assertReads,
  assertStores,
  canRelease,
  makeRelease,
  releaseFile,
  succeeds,
  unpackRelease,
} from './machine.ts'

const read = (...path: readonly string[]) => readFileSync(join(...path), 'utf8')

/** Only Debian makes releases, and systems derived from it. */
const testRelease = test.skipIf(needs('Debian (dpkg-query)', canRelease).skip)

let folder: string
beforeAll(async () => {
  if (canRelease) {
    await makeRelease()
    folder = unpackRelease(temporaryFolder(afterAll))
  }
})

testRelease('the folder has one addon, the Node that runs this, and its hash', () => {
  const archive = releaseFile('.tar.gz')
  const nodeOfFolder = readFileSync(join(folder, 'lib/node'))

  expect(globSync('**/*.node', { cwd: folder })).toEqual([
    `lib/plant-store/node_modules/better-sqlite3/prebuilds/${platform}.node`,
  ])
  expect(nodeOfFolder.equals(readFileSync(process.execPath))).toBe(true)
  const checked = runIn(dirname(archive), 'sha256sum', '--check', `${archive}.sha256`)
  expect(checked).toMatch(/: OK\n$/)
  expect(statSync(archive).size).toBeLessThan(60e6)
  expect(existsSync(join(folder, 'alerts.yml'))).toBe(true)
})

testRelease('the folder lists what it is made of, with the terms', () => {
  const { components } = JSON.parse(read(releaseFile('.cdx.json')))
  const terms = `\n${read(folder, 'third-party.txt')}`

  const names = components.map(({ name }: { name: string }) => name)
  const own = ['node', 'sqlite', 'libatomic1', 'better-sqlite3', 'swagger-ui-dist']
  expect(names).toEqual(expect.arrayContaining([...own, 'fastify', 'kysely', 'pg']))
  for (const { name, version, licenses } of components) {
    expect(terms, name).toContain(`\n${name} ${version} (`)
    expect(licenses[0].expression, `${name}: the expression of a licence`).toMatch(
      /^\(?[A-Z\d][\w.+-]+( (OR|AND|WITH) [\w.+-]+)*\)?$|^blessing$/,
    )
  }
})

testRelease('the folder carries the documents, whose links lead to files in it', () => {
  const pages = globSync('docs/**/*.md', { cwd: folder })
  const linked = pages.flatMap(page =>
    [...read(folder, page).matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)].map(([, path = '']) =>
      join(page, '..', path),
    ),
  )

  expect(pages).toContain('docs/install.md')
  expect(linked.filter(path => !existsSync(join(folder, path)))).toEqual([])
})

testRelease(
  'the folder needs the C library that the documentation names, and no newer one',
  () => {
    const programs = globSync(['lib/node', 'lib/*.so.*', 'lib/**/*.node'], {
      cwd: folder,
    })
    // Whole texts that end with U+0000.
    const options = ['--text', '--null-data', '--only-matching', '--no-filename']
    const version = ['--line-regexp', '--extended-regexp', 'GLIBC(XX)?_[0-9.]+']
    const found = runIn(folder, 'grep', ...options, ...version, ...programs)
    const symbols = found.split('\0').filter(Boolean)
    const sorted = symbols.sort(new Intl.Collator('en', { numeric: true }).compare)

    expect(sorted.findLast(symbol => symbol.startsWith('GLIBC_'))).toBe('GLIBC_2.34')
    // GCC 11 has this version.
    expect(sorted.at(-1)).toBe('GLIBCXX_3.4.29')
    const page = read(import.meta.dirname, '../../../docs/install.md')
    expect(page).toContain('It needs glibc 2.34 and the libstdc++ of GCC 11')
  },
)

testRelease('the folder serves with only a C library and a shell', async context => {
  if (!succeeds('chroot', '/', '/bin/true')) {
    return context.skip('not allowed: changing the root folder')
  }
  const root = temporaryFolder()
  const installed = unpackRelease(join(root, 'opt/plant-store'))
  const programs = globSync(['lib/node', 'lib/**/*.node'], { cwd: installed })
  const shell = ['/bin/sh', '/bin/readlink']
  const all = [...programs.map(file => join(installed, file)), ...shell]
  // libatomic is in the folder: not every system has it.
  const loaded = all.flatMap(librariesOf).filter(file => !/libatomic/.test(file))
  for (const file of [...shell, ...loaded]) {
    copyInto(root, file)
  }
  // A link to a link.
  mkdirSync(join(root, 'usr/bin'), { recursive: true })
  const link = '/usr/bin/plant-store'
  symlinkSync('../../opt/plant-store/bin/plant-store', join(root, link))
  symlinkSync(link, join(root, 'bin/plant-store'))

  const environment = { DATABASE_URL: 'file:/data/plants.db', PATH: '/bin' }
  const plantStore = ['/usr/sbin/chroot', root, '/bin/plant-store'] as const
  await using server = await startServer({
    command: [...plantStore, 'serve'],
    environment,
  })
  await assertKeepsPlants(server, plantStore, { environment }, '/data/plants.backup')
  expect(run(...plantStore, 'check', '/data/plants.backup')).toMatch(/intact\n$/)
})

test.each([
  ['a path from its folder', '.', 'bin/plant-store'],
  ['its name alone', 'bin', 'plant-store'],
  ['a link beside its folder', '.', 'link'],
])('the launcher finds its folder by %s, whatever CDPATH is', (_, cwd, name) => {
  const place = join(temporaryFolder(), 'a b')
  for (const folder of ['bin', 'lib']) {
    mkdirSync(join(place, folder), { recursive: true })
  }
  const launcher = join(place, 'bin/plant-store')
  cpSync(new URL('../src/plant-store.sh', import.meta.url), launcher)
  symlinkSync('bin/plant-store', join(place, 'link'))
  const node = '#!/bin/sh\necho "$@"\n'
  writeFileSync(join(place, 'lib/node'), node, { mode: 0o755 })

  const { stdout, stderr } = spawnSync('/bin/sh', [name, 'check'], {
    cwd: join(place, cwd),
    env: { ...process.env, CDPATH: '.' },
    encoding: 'utf8',
  })

  const program = `${realpathSync(join(place, 'lib'))}/plant-store/dist/main.js`
  expect({ stdout, stderr }).toEqual({ stdout: `${program} check\n`, stderr: '' })
})

// The proof at night makes the whole release again.
test('an archive is the same again, elsewhere and under another umask', () => {
  const archiveOf = (umask: number) => {
    const umaskBefore = process.umask(umask)
    try {
      const place = temporaryFolder()
      mkdirSync(join(place, 'a/b'), { recursive: true })
      writeFileSync(join(place, 'a/b/c'), 'x', { mode: 0o777 })
      writeFileSync(join(place, 'a/d'), 'x')
      const archive = join(place, 'archive.tar.gz')
      writeTar(archive, place, ['a'])
      return readFileSync(archive)
    } finally {
      process.umask(umaskBefore)
    }
  }

  expect(archiveOf(0o077)).toEqual(archiveOf(0o022))
})

const units = [
  'plant-store.service',
  'plant-store-backup.service',
  'plant-store-backup.timer',
]
const analyzed = needs('systemd-analyze', canRelease && isInstalled('systemd-analyze'))
const analyze = (...args: readonly string[]) =>
  spawnSync('systemd-analyze', args, { encoding: 'utf8' })

test('the units are right, where the folder is their /opt/plant-store', analyzed, () => {
  const root = temporaryFolder()
  const folder = unpackRelease(join(root, 'opt/plant-store'))
  const system = 'usr/lib/systemd/system'
  cpSync(`/${system}`, join(root, system), {
    recursive: true,
    verbatimSymlinks: true,
  })
  for (const unit of units) {
    cpSync(join(folder, unit), join(root, 'etc/systemd/system', unit))
  }
  const options = ['--man=no', '--recursive-errors=no', `--root=${root}`]

  const { status, stderr } = analyze('verify', ...options, ...units)

  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
})

test.for(units.filter(unit => unit.endsWith('.service')))(
  'systemd counts at most 1.5 of 10 for what %s leaves open',
  analyzed,
  unit => {
    const file = join(unpackRelease(temporaryFolder()), unit)
    const options = ['--offline=true', '--threshold=15']

    const { status, stdout } = analyze('security', ...options, file)

    expect(status, stdout).toBe(0)
  },
)

const token = 'a-token-of-the-environment-file'

/** Waits until a server is ready. */
const ready = (url: string) =>
  until('the server', async () => (await fetch(`${url}/readyz`)).ok, 30_000)

/**
 * systemd as the first process of a container: this machine's programs, and nothing else
 * of it.
 */
const container = (binds: Readonly<Record<string, string>>, target: string) =>
  [
    'systemd-nspawn',
    '--directory=/',
    '--volatile=yes',
    '--register=no',
    '--keep-unit',
    '--quiet',
    '--boot',
    '--console=read-only',
    ...Object.entries(binds).map(([to, from]) => `--bind-ro=${from}:${to}`),
    `systemd.unit=${target}`,
    'systemd.firstboot=off',
  ] as const

test(
  'systemd starts the server, and starts it again after a kill',
  needs('systemd-nspawn', canRelease && isInstalled('systemd-nspawn')),
  async context => {
    if (!succeeds(...container({}, 'exit.target'))) {
      return context.skip('not allowed: starting systemd in a container')
    }
    const place = temporaryFolder()
    const folder = unpackRelease(join(place, 'plant-store'))
    const port = await freePort()
    const environment = join(place, 'environment')
    writeFileSync(environment, `PORT=${port}\nACCESS_TOKENS=${token}\n`)
    const service = '/etc/systemd/system/plant-store.service'
    const binds = {
      '/opt/plant-store': folder,
      [service]: join(folder, 'plant-store.service'),
      '/etc/plant-store.env': environment,
    }
    const { PATH } = process.env
    const machine = launch(container(binds, 'plant-store.service'), {
      environment: { PATH },
      lastSignal: 'SIGTERM',
    })
    // Killed, it would leave its systemd behind.
    onTestFinished(async () => void (await machine.end('SIGTERM')))
    const url = `http://127.0.0.1:${port}`
    await ready(url)
    await assertStores(url, token)

    const childOf = (parent: number, what: string) =>
      Number(run('pgrep', '--parent', `${parent}`, '--full', what))
    const systemd = childOf(machine.pid, 'systemd')
    process.kill(childOf(systemd, 'main.js serve'), 'SIGKILL')
    await until('its end', async () => !(await fetch(url).catch(() => false)), 30_000)

    await ready(url)
    await assertReads(url, token)
  },
)
