import { cpSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { temporaryFolder } from '@plant-store/harness'
import { bun, nodeOf } from '@plant-store/harness/npm-program'
import type { TestProject } from 'vitest/node'
import { pnpmCommand, run, start } from '../src/run.ts'

declare module 'vitest' {
  interface ProvidedContext {
    installed: Installed
  }
}

/** Projects outside the workspace, which npm has installed from tarballs. */
export interface Installed {
  /** Has every published library, and the program for their examples. */
  readonly folder: string
  /** Has the program alone. */
  readonly programFolder: string
  readonly packages: readonly PackedPackage[]
  readonly program: PackedPackage
}

export interface PackedPackage {
  readonly name: string
  /** Its source in the workspace. */
  readonly source: string
  readonly tarball: string
}

const workspace = join(import.meta.dirname, '../../..')
const dependencies = join(import.meta.dirname, '../node_modules')
/** Returns the version of a package that this one depends on. */
const versionOf = (name: string): string =>
  JSON.parse(readFileSync(join(dependencies, name, 'package.json'), 'utf8')).version

/**
 * Packs what would be published, and installs it with npm into empty folders while other
 * tests run (`globalSetup`).
 */
export default function setUp(project: TestProject): () => Promise<void> {
  const temporary = temporaryFolder()
  const [folder = '', programFolder = ''] = ['service', 'program'].map(name => {
    const path = join(temporary.path, name)
    mkdirSync(path)
    return path
  })
  const packed = packAll(join(temporary.path, 'tarballs'))
  const packages = packed.filter(({ name }) => name !== 'plant-store')
  const program = packed.find(({ name }) => name === 'plant-store') as PackedPackage
  const typesOldest = join(dependencies, 'types-node-oldest')
  cpSync(typesOldest, join(folder, 'types-oldest/node'), {
    recursive: true,
    dereference: true,
  })
  // CI tests everything.
  const versions = process.env['CI']
    ? [tooOld, ...packed.map(({ source }) => oldestNode(source))]
    : []
  const installing = Promise.all([
    ...[...new Set(versions)].map(version => nodeOf(version).fetch()),
    ...(process.env['CI'] ? [bun.fetch()] : []),
    install(folder, packed, versionsOf('@types/node', 'openapi-fetch')),
    install(programFolder, [program]),
  ]).then(() => writeFileSync(join(folder, 'made'), ''))
  installing.catch(() => {})
  project.provide('installed', { folder, programFolder, packages, program })
  return () => installing.finally(() => temporary.remove())
}

/** A Node that the program does not run on. */
export const tooOld = '20.0.0'

/** Returns the oldest Node that a package names. */
export function oldestNode(source: string): string {
  const { engines } = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8'))
  return `${engines.node.slice('>='.length)}.0.0`.split('.').slice(0, 3).join('.')
}

const versionsOf = (...names: readonly string[]) =>
  Object.fromEntries(names.map(name => [name, versionOf(name)]))

const published = [
  '@plant-store/client',
  '@plant-store/domain',
  '@plant-store/json',
  'plant-store',
]

function packAll(folder: string): readonly PackedPackage[] {
  // Turbo has built them. Building again would overwrite files that other tests run.
  const pack = ['--config.ignore-scripts=true', 'pack', '--pack-destination', folder]
  const filters = ['--recursive', ...published.map(name => `--filter=${name}`)]
  run(...pnpmCommand, '--dir', workspace, ...filters, ...pack)
  return globSync('*.tgz', { cwd: folder }).map(file => {
    const tarball = join(folder, file)
    const name = /^plant-store-([a-z]+)-/.exec(file)?.[1]
    return name === undefined
      ? { name: 'plant-store', source: join(workspace, 'apps/cli'), tarball }
      : {
          name: `@plant-store/${name}`,
          source: join(workspace, 'packages', name),
          tarball,
        }
  })
}

/** Installs the packages, and others by version. */
async function install(
  folder: string,
  packages: readonly PackedPackage[],
  others: Readonly<Record<string, string>> = {},
): Promise<void> {
  const tarballs = Object.fromEntries(
    packages.map(({ name, tarball }) => [name, `file:${tarball}`]),
  )
  const manifest = {
    private: true,
    type: 'module',
    dependencies: { ...tarballs, ...others },
    // The packages depend on versions of each other that no registry has yet.
    overrides: Object.fromEntries(packages.map(({ name }) => [name, `$${name}`])),
  }
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest))
  const options = ['--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error']
  await start('npm', ['install', ...options], { cwd: folder })
}

/** Returns what a compiler says of a project, or why it says nothing. */
export async function compiled(tsc: string, config: string): Promise<string> {
  const running = start(process.execPath, [tsc, '--pretty', 'false', '-p', config], {
    cwd: dirname(config),
  })
  const { stdout } = await running.catch(error => ({
    stdout: error.stdout || `${error}`,
  }))
  return stdout
}
