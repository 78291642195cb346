import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { nodeOf } from '@plant-store/harness/npm-program'
import { temporaryFolder } from '@plant-store/harness/vitest'
import { afterAll } from 'vitest'
import { pnpmCommand, readManifest, run, start } from '../src/run.ts'

const workspace = join(import.meta.dirname, '../../..')
const dependencies = join(import.meta.dirname, '../node_modules')
const temporary = temporaryFolder(afterAll)
const at = (name: string) => join(temporary, name)

// Projects outside the workspace, installed from tarballs.
/** Has every published library, as pnpm installs them. */
export const folder = at('service')
/** Has the client alone, as pnpm installs it. */
export const consumerFolder = at('consumer')
/** Has the program alone, as npm installs it. */
export const programFolder = at('program')

/** Returns what would be published of a package, and its source in the workspace. */
const packed = (path: string) => {
  const source = join(workspace, path)
  const { name, version } = readManifest(source)
  const file = `${name.replace('@', '').replace('/', '-')}-${version}.tgz`
  return { name, source, tarball: at(file) }
}
export const packages = ['client', 'domain', 'json'].map(name =>
  packed(`packages/${name}`),
)
export const program = packed('apps/cli')

/** Returns the oldest Node that a package names. */
export function oldestNode(source: string): string {
  const { engines } = readManifest(source)
  return `${engines.node.slice('>='.length)}.0.0`.split('.').slice(0, 3).join('.')
}

/** Packs what would be published, and installs it into the folders. */
export async function packAndInstall(): Promise<void> {
  const all = [...packages, program]
  // Turbo has built them. Building again would overwrite files that other tests run.
  const pack = ['--config.ignore-scripts=true', 'pack', '--pack-destination', temporary]
  const filters = all.map(({ name }) => `--filter=${name}`)
  run(...pnpmCommand, '--dir', workspace, '--recursive', ...filters, ...pack)
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
  const write = (project: string, wanted: object, more: object = {}) => {
    mkdirSync(project)
    const manifest = { private: true, type: 'module', dependencies: wanted }
    writeFileSync(join(project, 'package.json'), JSON.stringify(manifest))
    const settings = { overrides: tarballs, ...more }
    writeFileSync(join(project, 'pnpm-workspace.yaml'), JSON.stringify(settings))
  }
  // The oldest types of Node look for others beside them.
  write(folder, { ...tarballs, ...others }, { nodeLinker: 'hoisted' })
  const client = '@plant-store/client'
  write(consumerFolder, { [client]: tarballs[client] })
  write(programFolder, { [program.name]: `file:${program.tarball}` })
  const typesOldest = join(dependencies, 'types-node-oldest')
  const options = { recursive: true, dereference: true }
  cpSync(typesOldest, join(folder, 'types-oldest/node'), options)
  const [pnpm, ...pnpmArgs] = pnpmCommand
  const npmOptions = ['--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error']
  // CI tests everything.
  const versions = process.env['CI'] ? all.map(({ source }) => oldestNode(source)) : []
  await Promise.all([
    ...Array.from(new Set(versions), version => nodeOf(version).fetch()),
    ...[folder, consumerFolder].map(cwd =>
      start(pnpm, [...pnpmArgs, 'install', '--prefer-offline'], { cwd }),
    ),
    start('npm', ['install', ...npmOptions], { cwd: programFolder }),
  ])
}
