import { cpSync, globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '@plant-store/harness'
import type { TestProject } from 'vitest/node'
import { pnpmCommand, run, runIn } from '../src/run.ts'

declare module 'vitest' {
  interface ProvidedContext {
    installed: Installed
  }
}

/** A project outside the workspace with every published library from its tarball. */
export interface Installed {
  readonly folder: string
  readonly packages: readonly PackedPackage[]
  /** The program, which is not installed. */
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
export const versionOf = (name: string): string =>
  JSON.parse(readFileSync(join(dependencies, name, 'package.json'), 'utf8')).version

/** For `globalSetup`: packs what would be published, and installs it with npm into an empty folder. */
export default function setUp(project: TestProject): () => void {
  const temporary = temporaryFolder()
  const packed = packAll(join(temporary.path, 'tarballs'))
  const packages = packed.filter(({ name }) => name !== 'plant-store')
  const program = packed.find(({ name }) => name === 'plant-store') as PackedPackage
  const folder = join(temporary.path, 'service')
  cpSync(join(import.meta.dirname, 'installed'), folder, { recursive: true })
  const typesOldest = join(dependencies, 'types-node-oldest')
  cpSync(typesOldest, join(folder, 'types-oldest/node'), { recursive: true, dereference: true })
  install(folder, packages, {
    // The oldest supported version. No second Fastify may be installed beside it.
    fastify: versionOf('fastify-oldest'),
    '@types/node': versionOf('@types/node'),
    kysely: versionOf('kysely'),
  })
  project.provide('installed', { folder, packages, program })
  return () => temporary.remove()
}

function packAll(folder: string): readonly PackedPackage[] {
  // Turbo has built them. Building again would overwrite files that other tests run.
  const pack = ['--config.ignore-scripts=true', 'pack', '--pack-destination', folder]
  run(
    ...pnpmCommand,
    '--dir',
    workspace,
    '--recursive',
    '--filter=./packages/*',
    '--filter=plant-store',
    ...pack,
  )
  return globSync('*.tgz', { cwd: folder }).map(file => {
    const tarball = join(folder, file)
    const name = /^plant-store-([a-z]+)-/.exec(file)?.[1]
    return name === undefined
      ? { name: 'plant-store', source: join(workspace, 'apps/cli'), tarball }
      : { name: `@plant-store/${name}`, source: join(workspace, 'packages', name), tarball }
  })
}

/** Installs the packages, and others by version, with npm. */
export function install(
  folder: string,
  packages: readonly PackedPackage[],
  others: Readonly<Record<string, string>>,
): void {
  const tarballs = Object.fromEntries(packages.map(({ name, tarball }) => [name, `file:${tarball}`]))
  const manifest = {
    private: true,
    type: 'module',
    dependencies: { ...tarballs, ...others },
    // The packages depend on versions of each other that no registry has yet.
    overrides: Object.fromEntries(packages.map(({ name }) => [name, `$${name}`])),
  }
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest))
  runIn(folder, 'npm', 'install', '--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error')
}
