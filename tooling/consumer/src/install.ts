import { cp, readdir, readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { temporaryFolder } from '@plant-store/harness'
import type { TestProject } from 'vitest/node'
import { pnpmCommand, run } from './run.ts'

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

declare module 'vitest' {
  interface ProvidedContext {
    installed: Installed
  }
}

const require = createRequire(import.meta.url)
const workspace = join(import.meta.dirname, '../../..')
const nursery = join(import.meta.dirname, '../test/nursery')
// The package does not export it.
const kysely = join(import.meta.dirname, '../node_modules/kysely/package.json')

/** Packs what would be published, and installs it with npm into an empty folder. */
export default async function setUp(project: TestProject): Promise<() => void> {
  using resources = new DisposableStack()
  const { path } = resources.use(temporaryFolder())
  const packed = await packAll(join(path, 'tarballs'))
  const packages = packed.filter(({ name }) => name !== 'plant-store')
  const program = packed.find(({ name }) => name === 'plant-store') as PackedPackage
  const folder = join(path, 'service')
  await cp(nursery, folder, { recursive: true })
  const typesOldest = join(import.meta.dirname, '../node_modules/types-node-oldest')
  await cp(typesOldest, join(folder, 'types-oldest/node'), { recursive: true, dereference: true })
  await install(folder, packages, {
    // The oldest supported version. No second Fastify may be installed beside it.
    fastify: require('fastify-oldest/package.json').version,
    '@types/node': require('@types/node/package.json').version,
    kysely: JSON.parse(await readFile(kysely, 'utf8')).version,
  })
  project.provide('installed', { folder, packages, program })
  const kept = resources.move()
  return () => kept.dispose()
}

async function packAll(folder: string): Promise<readonly PackedPackage[]> {
  // Turbo has built them. Building again would overwrite files that other tests run.
  const packages = [
    '--recursive',
    '--filter=./packages/*',
    '--filter=plant-store',
    '--config.ignore-scripts=true',
  ]
  const [pnpm, ...args] = pnpmCommand
  await run(pnpm, [...args, ...packages, 'pack', '--pack-destination', folder], workspace)
  return (await readdir(folder)).map(file => {
    const [, name] = /^plant-store(?:-([a-z]+))?-[\d.]+\.tgz$/.exec(file) as RegExpExecArray
    const tarball = join(folder, file)
    return name === undefined
      ? { name: 'plant-store', source: join(workspace, 'apps/cli'), tarball }
      : { name: `@plant-store/${name}`, source: join(workspace, 'packages', name), tarball }
  })
}

/** Installs the packages, and others by version, with npm. */
export async function install(
  folder: string,
  packages: readonly PackedPackage[],
  others: Readonly<Record<string, string>>,
): Promise<void> {
  const tarballs = Object.fromEntries(packages.map(({ name, tarball }) => [name, `file:${tarball}`]))
  const manifest = {
    name: 'nursery',
    private: true,
    type: 'module',
    dependencies: { ...tarballs, ...others },
    // The packages depend on versions of each other that no registry has yet.
    overrides: Object.fromEntries(packages.map(({ name }) => [name, `$${name}`])),
  }
  await writeFile(join(folder, 'package.json'), JSON.stringify(manifest))
  await run('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error'], folder)
}
