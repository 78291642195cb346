import { createHash } from 'node:crypto'
import {
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { temporaryFolder as disposableFolder, startServer } from '@plant-store/harness'
import { needs, temporaryFolder } from '@plant-store/harness/vitest'
import { beforeAll, describe, expect, test } from 'vitest'
import { makeFolder, platform } from '../src/folder.ts'
import { copyInto } from '../src/image.ts'
import { librariesOf } from '../src/libraries.ts'
import { run, writeTar } from '../src/run.ts'
import {
  assertKeepsPlants,
  canRelease,
  releasedFile,
  succeeds,
  unpackRelease,
} from './machine.ts'

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
const read = (...path: readonly string[]) => readFileSync(join(...path), 'utf8')

describe('the released folder', needs('Debian (dpkg-query)', canRelease), () => {
  let folder: string
  beforeAll(() => {
    const place = disposableFolder()
    folder = unpackRelease(place.path)
    return () => place[Symbol.dispose]()
  })

  test('has one addon, the Node that runs this, and its hash beside it', () => {
    const archive = releasedFile('.tar.gz')
    const nodeOfFolder = sha256(readFileSync(join(folder, 'lib/node')))

    expect(globSync('**/*.node', { cwd: folder })).toEqual([
      `lib/plant-store/node_modules/better-sqlite3/prebuilds/${platform}.node`,
    ])
    expect(nodeOfFolder).toBe(sha256(readFileSync(process.execPath)))
    expect(read(`${archive}.sha256`)).toContain(sha256(readFileSync(archive)))
    expect(statSync(archive).size).toBeLessThan(60e6)
    expect(existsSync(join(folder, 'alerts.yml'))).toBe(true)
  })

  test('lists what it is made of, with the terms', () => {
    const { components } = JSON.parse(read(releasedFile('.cdx.json')))
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

  test('carries the documents, whose links lead to files in it', () => {
    const pages = globSync('docs/**/*.md', { cwd: folder })
    const linked = pages.flatMap(page =>
      [...read(folder, page).matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)].map(
        ([, path = '']) => join(page, '..', path),
      ),
    )

    expect(pages).toContain('docs/install.md')
    expect(linked.filter(path => !existsSync(join(folder, path)))).toEqual([])
  })

  test('needs the C library that the documentation names, and no newer one', () => {
    const programs = ['lib/node', 'lib/*.so.*', 'lib/**/*.node']
    const symbols = globSync(programs, { cwd: folder }).flatMap(
      file =>
        readFileSync(join(folder, file), 'latin1').match(/GLIBC(XX)?_[\d.]+(?=\0)/g) ??
        [],
    )
    const sorted = symbols.sort(new Intl.Collator('en', { numeric: true }).compare)

    expect(sorted.findLast(symbol => symbol.startsWith('GLIBC_'))).toBe('GLIBC_2.34')
    // GCC 11 has this version.
    expect(sorted.at(-1)).toBe('GLIBCXX_3.4.29')
    const page = read(import.meta.dirname, '../../../docs/install.md')
    expect(page).toContain('It needs glibc 2.34 and the libstdc++ of GCC 11')
  })

  test('is the same again, in another place and under another umask', () => {
    const again = temporaryFolder()
    const archive = join(again, 'again.tar')
    const umask = process.umask(0o077)
    try {
      const { name, sbom } = makeFolder(again)
      writeTar(archive, again, [name])
      expect(sbom).toBe(read(releasedFile('.cdx.json')))
    } finally {
      process.umask(umask)
    }

    const first = gunzipSync(readFileSync(releasedFile('.tar.gz')))
    expect(sha256(readFileSync(archive))).toBe(sha256(first))
  })

  test('serves, and its commands work, with only a C library and a shell', async context => {
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
})
