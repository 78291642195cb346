import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { run } from './run.ts'

/** A project outside the workspace that has every published package from its tarball. */
export interface Installed {
  readonly folder: string
  readonly packages: readonly PackedPackage[]
}

export interface PackedPackage {
  readonly name: string
  /** Where its source is, in the workspace. */
  readonly source: string
  readonly tarball: string
}

declare module 'vitest' {
  interface ProvidedContext {
    installed: Installed
  }
}

const workspace = join(import.meta.dirname, '../../..')
const nursery = join(import.meta.dirname, '../test/nursery')

/** Packs what would be published, and installs it as a stranger would: with npm, into an empty folder. */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'nursery-'))
  try {
    const packages = await packAll(folder)
    const service = join(folder, 'service')
    await cp(nursery, service, { recursive: true })
    await install(service, packages)
    project.provide('installed', { folder: service, packages })
  } catch (error) {
    await rm(folder, { recursive: true })
    throw error
  }
  return () => rm(folder, { recursive: true })
}

async function packAll(folder: string): Promise<readonly PackedPackage[]> {
  const packages = join(workspace, 'packages')
  const sources = (await readdir(packages)).map(name => join(packages, name))
  const manifests = await Promise.all(sources.map(readManifest))
  const published = manifests.flatMap(({ name, private: isPrivate }, n) =>
    isPrivate === true ? [] : [{ name, source: sources[n] as string }],
  )
  return Promise.all(
    published.map(async ({ name, source }) => {
      const destination = join(folder, name.replace('/', '-'))
      await mkdir(destination)
      await runPnpm(['pack', '--pack-destination', destination], source)
      const [file] = await readdir(destination)
      return { name, source, tarball: join(destination, file as string) }
    }),
  )
}

async function readManifest(folder: string): Promise<{ name: string; private?: boolean }> {
  return JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
}

/** With the pnpm that runs the test; it is a program of its own or a script, depending on how it came here. */
function runPnpm(args: readonly string[], cwd: string): Promise<string> {
  const { npm_execpath: pnpm = 'pnpm' } = process.env
  return /\.[cm]?js$/.test(pnpm) ? run(process.execPath, [pnpm, ...args], cwd) : run(pnpm, args, cwd)
}

async function install(folder: string, packages: readonly PackedPackage[]): Promise<void> {
  const { version: fastify } = versionOf('fastify')
  const { version: types } = versionOf('@types/node')
  const tarballs = Object.fromEntries(packages.map(({ name, tarball }) => [name, `file:${tarball}`]))
  const manifest = {
    name: 'nursery',
    private: true,
    type: 'module',
    dependencies: { ...tarballs, fastify },
    devDependencies: { '@types/node': types },
    // What the packages need of each other is not in a registry yet.
    overrides: Object.fromEntries(packages.map(({ name }) => [name, `$${name}`])),
  }
  await writeFile(join(folder, 'package.json'), JSON.stringify(manifest))
  await run('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error'], folder)
}

function versionOf(name: string): { version: string } {
  return createRequire(import.meta.url)(`${name}/package.json`)
}
