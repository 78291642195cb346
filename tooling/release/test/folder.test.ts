import { createHash } from 'node:crypto'
import {
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { temporaryFolder as disposableFolder, startServer } from '@plant-store/harness'
import { needs, temporaryFolder } from '@plant-store/harness/vitest'
import { beforeAll, describe, expect, test } from 'vitest'
import { writeTar } from '../src/archive.ts'
import { makeFolder, platform } from '../src/folder.ts'
import { librariesOf } from '../src/libraries.ts'
import {
  assertServes,
  canRelease,
  copyInto,
  ended,
  releasedFile,
  succeeds,
  unpackRelease,
} from './machine.ts'

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

describe('the released folder', needs('Debian (dpkg-query)', canRelease), () => {
  let folder: string
  beforeAll(() => {
    const place = disposableFolder()
    folder = unpackRelease(place.path)
    return () => place[Symbol.dispose]()
  })

  test('has one addon, the Node that runs this, and its hash beside it', () => {
    const megabytes = globSync('**', { cwd: folder }).reduce(
      (sum, path) => sum + statSync(join(folder, path)).size / 1e6,
      0,
    )
    const archive = releasedFile('.tar.gz')
    const packed = statSync(archive).size / 1e6
    console.log(
      `${basename(archive)}: ${packed.toFixed(1)} MB, unpacked ${megabytes.toFixed(1)} MB`,
    )
    expect(globSync('**/*.node', { cwd: folder })).toEqual([
      `lib/plant-store/node_modules/better-sqlite3/prebuilds/${platform}.node`,
    ])
    expect(sha256(readFileSync(join(folder, 'lib/node')))).toBe(
      sha256(readFileSync(process.execPath)),
    )
    expect(readFileSync(`${archive}.sha256`, 'utf8')).toBe(
      `${sha256(readFileSync(archive))}  ${basename(archive)}\n`,
    )
    expect(packed).toBeLessThan(60)
    expect(readdirSync(folder)).toEqual(
      expect.arrayContaining(['alerts.yml', 'grafana-dashboard.json']),
    )
  })

  test('lists what it is made of, with the terms', () => {
    const { components } = JSON.parse(readFileSync(releasedFile('.cdx.json'), 'utf8'))
    for (const name of ['node', 'sqlite', 'better-sqlite3', 'fastify', 'kysely', 'pg']) {
      expect(components, name).toContainEqual(expect.objectContaining({ name }))
    }
    for (const { licenses } of components) {
      expect(licenses[0].expression, 'the expression of a licence').toMatch(
        /^\(?[A-Z\d][\w.+-]+( (OR|AND|WITH) [\w.+-]+)*\)?$|^blessing$/,
      )
    }
    const terms = readFileSync(join(folder, 'third-party.txt'), 'utf8')
    for (const { name, version } of components) {
      expect(`\n${terms}`, name).toContain(`\n${name} ${version} (`)
    }
    const purls = components.map(({ purl }: { purl: string }) => purl)
    expect(purls).toEqual([...new Set(purls)])
  })

  test('carries the documents, whose links lead to files in it', () => {
    const pages = globSync('docs/**/*.md', { cwd: folder })
    const missing = pages.flatMap(page => {
      const text = readFileSync(join(folder, page), 'utf8')
      const links = [...text.matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)]
      return links
        .map(([, path = '']) => join(folder, page, '..', path))
        .filter(file => !existsSync(file))
        .map(file => `${page}: ${file}`)
    })

    expect(pages).toEqual(
      expect.arrayContaining(['docs/install.md', 'docs/operating.md']),
    )
    expect(missing).toEqual([])
  })

  test('needs the C library that the documentation names, and no newer one', () => {
    const symbols = globSync(['lib/node', 'lib/*.so.*', 'lib/**/*.node'], { cwd: folder })
      .flatMap(
        file =>
          readFileSync(join(folder, file), 'latin1').match(/GLIBC(XX)?_[\d.]+(?=\0)/g) ??
          [],
      )
      .sort(new Intl.Collator('en', { numeric: true }).compare)
    const ofGlibc = symbols.filter(symbol => symbol.startsWith('GLIBC_'))
    expect(ofGlibc.at(-1)).toBe('GLIBC_2.34')
    // GCC 11 has this version.
    expect(symbols.at(-1)).toBe('GLIBCXX_3.4.29')
    const page = readFileSync(
      new URL('../../../docs/install.md', import.meta.url),
      'utf8',
    )
    expect(page).toContain('It needs glibc 2.34 and the libstdc++ of GCC 11')
  })

  test('is the same again, in another place and under another umask', async () => {
    const again = temporaryFolder()
    const umask = process.umask(0o077)
    const { name, sbom } = (() => {
      try {
        return makeFolder(again)
      } finally {
        process.umask(umask)
      }
    })()
    const archive = join(again, 'again.tar')
    await writeTar([name], archive, { from: again })
    expect(sha256(readFileSync(archive))).toBe(
      sha256(gunzipSync(readFileSync(releasedFile('.tar.gz')))),
    )
    expect(sbom).toBe(readFileSync(releasedFile('.cdx.json'), 'utf8'))
  })

  test('serves, and its commands work, with only a C library and a shell', async context => {
    if (!succeeds('chroot', '/', '/bin/true')) {
      return context.skip('not allowed: changing the root folder')
    }
    const root = temporaryFolder()
    unpackRelease(join(root, 'opt/plant-store'))
    const loaded = globSync(['lib/node', 'lib/**/*.node'], { cwd: folder }).flatMap(
      file => librariesOf(join(folder, file)),
    )
    // That one is in the folder: not every system has it.
    for (const library of loaded) {
      if (!library.endsWith('/libatomic.so.1')) {
        copyInto(root, library)
      }
    }
    for (const program of ['/bin/sh', '/bin/readlink']) {
      for (const file of [program, ...librariesOf(program)]) {
        copyInto(root, file)
      }
    }
    // A link to a link.
    mkdirSync(join(root, 'usr/bin'), { recursive: true })
    symlinkSync(
      '../../opt/plant-store/bin/plant-store',
      join(root, 'usr/bin/plant-store'),
    )
    symlinkSync('/usr/bin/plant-store', join(root, 'bin/plant-store'))

    const environment = { DATABASE_URL: 'file:/data/plants.db', PATH: '/bin' }
    const command = (...args: readonly string[]): [string, ...string[]] => [
      '/usr/sbin/chroot',
      ...[root, '/bin/plant-store', ...args],
    ]
    const run = (...args: readonly string[]) => ended(command(...args), environment)

    await using server = await startServer({ command: command('serve'), environment })
    await assertServes(server, run)
    expect(await run('check')).toMatchObject({ code: 0 })
    expect(statSync(join(root, 'data/plants.backup')).size).toBeGreaterThan(0)
  })
})
