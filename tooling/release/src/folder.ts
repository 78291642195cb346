import assert from 'node:assert/strict'
import {
  chmodSync,
  copyFileSync,
  cpSync,
  globSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { temporaryFolder } from '@plant-store/harness'
import { copyDocuments } from './documents.ts'
import { bundledParts, npmPart, type Part, toSbom, toTerms } from './inventory.ts'
import { debianPackageOf, librariesOf } from './libraries.ts'
import { pnpmCommand, readManifest, run } from './run.ts'

const root = join(import.meta.dirname, '../../..')
const packageFolder = join(root, 'apps/cli')
const sqlite = folderOf('better-sqlite3', packageFolder)
/** The library of the API reference. */
const swaggerUi = folderOf('swagger-ui-dist', join(root, 'packages/http'))

/** The platform of a release. */
export const platform = 'linux-x64'

/**
 * Makes the folder inside another one. It contains the published package `plant-store`.
 * Returns its name, which contains the version and the platform, and its bill of
 * materials.
 *
 * @param place must exist
 */
export function makeFolder(place: string) {
  const { version } = readManifest(packageFolder)
  const name = `plant-store-${version}-${platform}`
  const folder = join(place, name)
  const lib = join(folder, 'lib')
  const program = join(lib, 'plant-store')
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(join(folder, 'bin'), { recursive: true })

  // It is built already. Building again would overwrite files that other tests run.
  const pnpm = [...pnpmCommand, '--dir', packageFolder, '--config.ignore-scripts=true']
  unpack(program, [...pnpm, 'pack'], '--strip-components=1')
  // Leave out SQLite's sources and other platforms' files.
  for (const path of ['package.json', 'LICENSE', 'lib', `prebuilds/${platform}.node`]) {
    const to = join(program, 'node_modules/better-sqlite3', path)
    cpSync(join(sqlite, path), to, { recursive: true })
  }
  // The running version. npm verifies its hash.
  const node = `node-${platform}@${process.versions.node}`
  const npm = ['npm', 'pack', node, '--prefer-offline', '--loglevel=error']
  unpack(lib, npm, '--transform=s|.*/||', 'package/bin/node', 'package/LICENSE')
  const parts = [...partsOf(lib), copyLibatomic(lib)]
  rmSync(join(lib, 'LICENSE'))

  const start = join(folder, 'bin/plant-store')
  copyFileSync(join(import.meta.dirname, 'plant-store.sh'), start)
  chmodSync(start, 0o755)
  const deploy = join(root, 'deploy')
  const units = ['*.service', '*.timer', 'alerts.yml', 'grafana-dashboard.json']
  for (const file of globSync(units, { cwd: deploy })) {
    copyFileSync(join(deploy, file), join(folder, file))
  }
  copyDocuments(join(root, 'docs'), join(folder, 'docs'))
  copyFileSync(join(root, 'LICENSE'), join(folder, 'LICENSE'))
  writeFileSync(join(folder, 'third-party.txt'), toTerms(parts))
  return { name, sbom: toSbom(version, parts) }
}

/** Returns the folder of a package that another one uses. */
function folderOf(name: string, user: string) {
  const require = createRequire(join(user, 'package.json'))
  return dirname(require.resolve(`${name}/package.json`))
}

/** Unpacks what a command packs, or these files of it, into a folder. */
function unpack(folder: string, pack: readonly string[], ...what: readonly string[]) {
  using packed = temporaryFolder()
  const [program = '', ...args] = pack
  run(program, ...args, '--pack-destination', packed.path)
  const [tarball = ''] = globSync('*.tgz', { cwd: packed.path })
  mkdirSync(folder, { recursive: true })
  run('tar', '-xzf', join(packed.path, tarball), '-C', folder, ...what)
}

function partsOf(lib: string): readonly Part[] {
  const header = readFileSync(join(sqlite, 'deps/sqlite3/sqlite3.h'), 'utf8')
  const [, sqliteVersion = ''] = /#define SQLITE_VERSION\s+"(.*)"/.exec(header) ?? []
  const read = (file: string) => readFileSync(join(lib, file), 'utf8')
  return [
    {
      type: 'generic',
      name: 'node',
      version: process.versions.node,
      license: 'MIT',
      text: read('LICENSE').trim(),
    },
    {
      type: 'generic',
      name: 'sqlite',
      version: sqliteVersion,
      license: 'blessing',
      text: 'Its authors have dedicated it to the public domain.',
    },
    npmPart(sqlite),
    npmPart(swaggerUi),
    ...bundledParts(read('plant-store/dist/third-party.txt')),
  ]
}

/**
 * Copies libatomic, which Node needs and small systems lack. It comes from Debian's
 * package, and needs a much older glibc than Node does.
 */
function copyLibatomic(lib: string): Part {
  const libraries = librariesOf(join(lib, 'node'))
  const library = libraries.find(path => path.endsWith('/libatomic.so.1'))
  assert(library, 'Node needs libatomic')
  copyFileSync(library, join(lib, 'libatomic.so.1'))
  const license = 'GPL-3.0-or-later WITH GCC-exception-3.1'
  return { type: 'deb/debian', ...debianPackageOf(library), license }
}
