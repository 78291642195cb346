import { cpSync, globSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '@plant-store/harness'
import { nodeOf } from '@plant-store/harness/npm-program'
import type { TestProject } from 'vitest/node'
import { pnpmCommand, readManifest, run, start } from '../src/run.ts'

declare module 'vitest' {
  interface ProvidedContext {
    installed: Installed
  }
}

/** Projects outside the workspace, installed from tarballs. */
export interface Installed {
  /** Has every published library, as pnpm installs them. */
  readonly folder: string
  /** Has the client alone, as pnpm installs it. */
  readonly consumerFolder: string
  /** Has the program alone, as npm installs it. */
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

/** Returns the oldest Node that a package names. */
export function oldestNode(source: string): string {
  const { engines } = readManifest(source)
  return `${engines.node.slice('>='.length)}.0.0`.split('.').slice(0, 3).join('.')
}

/**
 * Packs what would be published, and installs it into empty folders while other tests run
 * (`globalSetup`).
 */
export default function setUp(project: TestProject): () => Promise<void> {
  const temporary = temporaryFolder()
  const at = (name: string) => join(temporary.path, name)
  // Turbo has built them. Building again would overwrite files that other tests run.
  const pack = [
    '--config.ignore-scripts=true',
    'pack',
    '--pack-destination',
    at('packed'),
  ]
  const sources = [
    ...['client', 'domain', 'json'].map(name => `packages/${name}`),
    'apps/cli',
  ]
  const filters = ['--recursive', ...sources.map(source => `--filter=./${source}`)]
  run(...pnpmCommand, '--dir', workspace, ...filters, ...pack)
  const packed = sources.map(path => {
    const source = join(workspace, path)
    const { name } = readManifest(source)
    const prefix = `${name.replace('@', '').replace('/', '-')}-[0-9]*.tgz`
    const [file = ''] = globSync(prefix, { cwd: at('packed') })
    return { name, source, tarball: join(at('packed'), file) }
  })
  const packages = packed.filter(({ name }) => name !== 'plant-store')
  const program = packed.find(({ name }) => name === 'plant-store') as PackedPackage
  const tarballs = Object.fromEntries(
    packages.map(({ name, tarball }) => [name, `file:${tarball}`]),
  )
  const others = Object.fromEntries(
    ['@types/node', 'openapi-fetch'].map(name => [
      name,
      readManifest(join(dependencies, name)).version,
    ]),
  )
  // The packages depend on versions of each other that no registry has yet.
  const write = (name: string, wanted: object, more: object = {}) => {
    mkdirSync(at(name))
    const manifest = { private: true, type: 'module', dependencies: wanted }
    writeFileSync(join(at(name), 'package.json'), JSON.stringify(manifest))
    const settings = { overrides: tarballs, ...more }
    writeFileSync(join(at(name), 'pnpm-workspace.yaml'), JSON.stringify(settings))
    return at(name)
  }
  const folder = write(
    'service',
    { ...tarballs, ...others },
    // The oldest types of Node look for others beside them.
    { nodeLinker: 'hoisted' },
  )
  const client = '@plant-store/client'
  const consumerFolder = write('consumer', { [client]: tarballs[client] })
  const programFolder = write('program', { 'plant-store': `file:${program.tarball}` })
  const typesOldest = join(dependencies, 'types-node-oldest')
  const options = { recursive: true, dereference: true }
  cpSync(typesOldest, join(folder, 'types-oldest/node'), options)
  const [pnpm, ...pnpmArgs] = pnpmCommand
  const npmOptions = ['--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error']
  // CI tests everything.
  const versions = process.env['CI']
    ? new Set(packed.map(({ source }) => oldestNode(source)))
    : []
  const installing = Promise.all([
    ...Array.from(versions, version => nodeOf(version).fetch()),
    ...[folder, consumerFolder].map(cwd =>
      start(pnpm, [...pnpmArgs, 'install', '--prefer-offline'], { cwd }),
    ),
    start('npm', ['install', ...npmOptions], { cwd: programFolder }),
  ]).then(() => writeFileSync(join(folder, 'made'), ''))
  installing.catch(() => {})
  const folders = { folder, consumerFolder, programFolder }
  project.provide('installed', { ...folders, packages, program })
  return () => installing.finally(() => temporary.remove())
}
