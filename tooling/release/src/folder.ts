import {
  chmodSync,
  copyFileSync,
  cpSync,
  globSync,
  mkdirSync,
  readdirSync,
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
import { pnpmCommand, run } from './run.ts'

const root = join(import.meta.dirname, '../../..')
const packageFolder = join(root, 'apps/cli')
const sqlite = folderOf('better-sqlite3', packageFolder)
/** The library of the API reference. */
const swaggerUi = folderOf('swagger-ui-dist', join(root, 'packages/http'))

/** The platform of a release. */
export const platform = 'linux-x64'

export interface Release {
  /** Its name contains the version and the platform. */
  readonly name: string
  readonly sbom: string
}

/**
 * Makes the folder inside another one. It contains the published package `plant-store`.
 *
 * @param place must exist
 */
export function makeFolder(place: string): Release {
  const { version } = JSON.parse(
    readFileSync(join(packageFolder, 'package.json'), 'utf8'),
  )
  const name = `plant-store-${version}-${platform}`
  const folder = join(place, name)
  const lib = join(folder, 'lib')
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(lib, { recursive: true })

  unpackPackage(join(lib, 'plant-store'))
  copySqlite(join(lib, 'plant-store/node_modules/better-sqlite3'))
  unpackNode(lib)
  const parts = [...partsOf(lib), ...copyLibatomic(lib)]
  rmSync(join(lib, 'LICENSE'))

  mkdirSync(join(folder, 'bin'))
  copyFileSync(
    join(import.meta.dirname, 'plant-store.sh'),
    join(folder, 'bin/plant-store'),
  )
  chmodSync(join(folder, 'bin/plant-store'), 0o755)
  const deploy = join(root, 'deploy')
  for (const file of globSync(
    ['*.service', '*.timer', 'alerts.yml', 'grafana-dashboard.json'],
    {
      cwd: deploy,
    },
  )) {
    copyFileSync(join(deploy, file), join(folder, file))
  }
  copyDocuments(join(root, 'docs'), join(folder, 'docs'))
  copyFileSync(join(root, 'LICENSE'), join(folder, 'LICENSE'))
  writeFileSync(join(folder, 'third-party.txt'), toTerms(parts))
  return { name, sbom: toSbom(version, parts) }
}

/** Returns the folder of a package that another one uses. */
function folderOf(name: string, user: string): string {
  return dirname(
    createRequire(join(user, 'package.json')).resolve(`${name}/package.json`),
  )
}

function unpackPackage(folder: string): void {
  using packed = temporaryFolder()
  // It is built already. Building again would overwrite files that other tests run.
  const pack = ['--config.ignore-scripts=true', 'pack', '--pack-destination', packed.path]
  run(...pnpmCommand, '--dir', packageFolder, ...pack)
  const [tarball = ''] = globSync('*.tgz', { cwd: packed.path })
  mkdirSync(folder)
  run('tar', '-xzf', join(packed.path, tarball), '-C', folder, '--strip-components=1')
}

/**
 * Unpacks the running version of Node and its LICENSE into a folder. npm verifies its
 * hash.
 */
function unpackNode(folder: string): void {
  using download = temporaryFolder()
  const wanted = `node-${platform}@${process.versions.node}`
  run(
    'npm',
    'pack',
    wanted,
    '--pack-destination',
    download.path,
    '--prefer-offline',
    '--loglevel=error',
  )
  const [tarball = ''] = readdirSync(download.path)
  const files = ['package/bin/node', 'package/LICENSE']
  run(
    'tar',
    '-xzf',
    join(download.path, tarball),
    '-C',
    folder,
    '--transform=s|.*/||',
    ...files,
  )
}

/** Copies what SQLite needs, without its sources and other platforms' files. */
function copySqlite(folder: string): void {
  for (const path of ['package.json', 'LICENSE', 'lib', `prebuilds/${platform}.node`]) {
    cpSync(join(sqlite, path), join(folder, path), { recursive: true })
  }
}

function partsOf(lib: string): readonly Part[] {
  const header = readFileSync(join(sqlite, 'deps/sqlite3/sqlite3.h'), 'utf8')
  const [, sqliteVersion = 'unknown'] =
    /#define SQLITE_VERSION\s+"(.*)"/.exec(header) ?? []
  return [
    {
      type: 'generic',
      name: 'node',
      version: process.versions.node,
      license: 'MIT',
      text: readFileSync(join(lib, 'LICENSE'), 'utf8').trim(),
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
    ...bundledParts(readFileSync(join(lib, 'plant-store/dist/third-party.txt'), 'utf8')),
  ]
}

/**
 * Copies libatomic, which Node needs and small systems lack. It comes from Debian's
 * package, and needs a much older glibc than Node does.
 */
function copyLibatomic(lib: string): readonly Part[] {
  const library = librariesOf(join(lib, 'node')).find(path =>
    path.endsWith('/libatomic.so.1'),
  )
  if (library === undefined) {
    return []
  }
  copyFileSync(library, join(lib, 'libatomic.so.1'))
  const license = 'GPL-3.0-or-later WITH GCC-exception-3.1'
  return [{ type: 'deb/debian', ...debianPackageOf(library), license }]
}
