import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Import, importsOf } from './imports.ts'

/** A package of this repository, as it is on disk. */
export interface Package {
  /** As in `@plant-store/domain`. */
  readonly name: string
  /** From the root, such as `packages/domain`. */
  readonly folder: string
  readonly manifest: Manifest
  readonly files: readonly SourceFile[]
}

export interface Manifest {
  readonly name: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
  readonly exports?: Readonly<Record<string, { readonly types: string; readonly default: string }>>
}

export interface SourceFile {
  /** From the folder of its package, such as `src/index.ts`. */
  readonly path: string
  readonly imports: readonly Import[]
}

/** Every package with all its TypeScript, and the manifest at the root. */
export function readWorkspace(root: string): { packages: Package[]; rootManifest: Manifest } {
  const packages = globSync('{packages,apps,tooling}/*/package.json', { cwd: root })
    .sort()
    .map(path => readPackage(root, path.slice(0, -'/package.json'.length)))
  return { packages, rootManifest: readManifest(root) }
}

function readPackage(root: string, folder: string): Package {
  const home = join(root, folder)
  const paths = globSync('**/*.{ts,mts,cts,tsx}', {
    cwd: home,
    exclude: name => /^(node_modules|dist)$/.test(name),
  })
  const files = paths
    .sort()
    .map(path => ({ path, imports: importsOf(`${folder}/${path}`, readFileSync(join(home, path), 'utf8')) }))
  const manifest = readManifest(home)
  return { name: manifest.name, folder, manifest, files }
}

function readManifest(folder: string): Manifest {
  const file = join(folder, 'package.json')
  if (!existsSync(file)) throw new Error(`${file} is missing`)
  return JSON.parse(readFileSync(file, 'utf8')) as Manifest
}
