import { posix } from 'node:path'
import type { Import } from './imports.ts'
import type { Manifest, Package, SourceFile } from './workspace.ts'

/** What the sources of a package may import. */
export interface Allowance {
  /** Packages of ours, without the scope. */
  readonly ours: readonly string[]
  /** Packages from elsewhere; `node:` stands for all of Node, `node:crypto` for that module. */
  readonly outside: readonly string[]
  /** What `src/testing` may import besides. */
  readonly testing?: readonly string[]
}

/** Who may import whom. What isn't here is a program or a tool: it may import every package, and nobody imports it. */
export const table: Readonly<Record<string, Allowance>> = {
  json: { ours: [], outside: [] },
  domain: { ours: [], outside: [], testing: ['node:assert'] },
  access: { ours: [], outside: ['node:crypto'], testing: ['node:assert'] },
  client: { ours: ['domain'], outside: [] },
  persistence: { ours: ['domain', 'access'], outside: ['better-sqlite3', 'kysely', 'pg', 'node:'] },
  http: {
    ours: ['domain', 'access', 'json'],
    outside: [
      'fastify',
      '@fastify/*',
      'typebox',
      'fast-content-type-parse',
      'fast-json-stringify',
      'ipaddr.js',
      'swagger-ui-dist',
      'node:',
    ],
  },
}

const scope = '@plant-store/'

/** Every place where a package breaks the rules, a line each; none when it keeps them. */
export function violations(each: Package, all: readonly Package[]): string[] {
  const found: string[] = []
  for (const file of each.files) {
    for (const imported of file.imports) {
      const problem = problemOf(each, file, imported, all)
      if (problem !== undefined) found.push(`${each.folder}/${file.path}:${imported.line} ${problem}`)
    }
  }
  return [...found, ...wrongShape(each), ...unused(each)]
}

function problemOf(
  each: Package,
  file: SourceFile,
  { specifier, kind }: Import,
  all: readonly Package[],
): string | undefined {
  if (specifier === undefined) {
    return isTool(each) ? undefined : "imports what can't be known from its text"
  }
  if (kind === 'load' || specifier.startsWith('.')) return wrongPath(each, file, specifier, kind)
  return (
    wrongDoor(specifier, all) ??
    (isSource(file) ? forbidden(each, file, specifier) : undefined) ??
    undeclared(each, file, specifier)
  )
}

/** What is declared at the root is there for every package, whatever its own manifest says. */
export function rootViolations({ dependencies = {} }: Manifest): string[] {
  return Object.keys(dependencies).map(name => `package.json has the runtime dependency ${name}`)
}

const isSource = ({ path }: SourceFile) => path.startsWith('src/')
const isTesting = ({ path }: SourceFile) => path.startsWith('src/testing/')
const shortName = (name: string) => name.slice(scope.length)
const isTool = ({ folder }: Package) => folder.startsWith('tooling/')

/** `@scope/name/way/in` is of the package `@scope/name`. */
function packageOf(specifier: string): string {
  const [first = '', second = ''] = specifier.split('/')
  return first.startsWith('@') ? `${first}/${second}` : first
}

/**
 * A relative path stays within its part of its own package. Tests may start what is built, but not reach into sources;
 * a tool that is not built has its sources tested as they are, and may start what others have built.
 */
function wrongPath(
  each: Package,
  { path }: SourceFile,
  specifier: string,
  kind: Import['kind'],
): string | undefined {
  const target = posix.join(posix.dirname(path), specifier)
  const [part = ''] = path.split('/')
  const allowed = [part]
  if (part === 'test') allowed.push('dist')
  if (part === 'test' && isTool(each)) allowed.push('src')
  if (allowed.some(folder => target === folder || target.startsWith(`${folder}/`))) return undefined
  const isItsOwnOrBuilt = !target.startsWith('..') || /^(\.\.\/)+(packages|apps)\/[^/]+\/dist\//.test(target)
  if (isTool(each) && kind === 'load' && isItsOwnOrBuilt) return undefined
  return `reaches from ${part} to ${target}`
}

/** A package of ours is entered by one of its `exports` only. */
function wrongDoor(specifier: string, all: readonly Package[]): string | undefined {
  if (!specifier.startsWith(scope)) return undefined
  const owner = all.find(({ name }) => name === packageOf(specifier))
  if (owner === undefined) return `imports ${specifier}, which is no package here`
  const door = `.${specifier.slice(owner.name.length)}`
  return Object.hasOwn(owner.manifest.exports ?? {}, door)
    ? undefined
    : `enters ${owner.name} by ${door}, which it does not export`
}

function forbidden(each: Package, file: SourceFile, specifier: string): string | undefined {
  const name = packageOf(specifier)
  if (name === each.name) return `imports its own package by name`
  if (specifier.endsWith('/testing') && name.startsWith(scope)) return `ships with ${specifier}`
  const allowance = table[shortName(each.name)]
  if (name.startsWith(scope) && table[shortName(name)] === undefined && !isTool(each)) {
    return `imports ${name}, which is a program or a tool`
  }
  if (allowance === undefined) return undefined
  const allowed = name.startsWith(scope)
    ? allowance.ours.includes(shortName(name))
    : [...allowance.outside, ...(isTesting(file) ? (allowance.testing ?? []) : [])].some(each =>
        covers(each, name),
      )
  return allowed ? undefined : `may not import ${specifier}`
}

function covers(allowed: string, name: string): boolean {
  if (allowed === 'node:') return name.startsWith('node:')
  return allowed.endsWith('/*') ? name.startsWith(allowed.slice(0, -1)) : name === allowed
}

/** Sources need what is installed with the package; tests, settings and tools also what is there for development. */
function undeclared(each: Package, file: SourceFile, specifier: string): string | undefined {
  const wanted = packageOf(specifier)
  if (/^(node|bun):/.test(wanted) || wanted === each.name) return undefined
  const { dependencies = {}, devDependencies = {} } = each.manifest
  const ships = isSource(file) && !isTool(each)
  const declared = ships ? dependencies : { ...dependencies, ...devDependencies }
  return Object.hasOwn(declared, wanted)
    ? undefined
    : `imports ${wanted}, which its package.json does not declare`
}

/** Names leave a package one by one, through entries that it declares; no folder within has an index of its own. */
function wrongShape({ folder, manifest, files }: Package): string[] {
  const entries = Object.values(manifest.exports ?? {}).map(entry =>
    entry.default.replace(/^\.\/(dist|src)\//, 'src/').replace(/\.js$/, '.ts'),
  )
  const paths = files.map(({ path }) => path)
  return [
    ...entries
      .filter(entry => !paths.includes(entry))
      .map(entry => `${folder} exports ${entry}, which is not there`),
    ...paths
      .filter(path => path.endsWith('/index.ts') && !entries.includes(path))
      .map(path => `${folder}/${path} is an index that no one enters by`),
    ...files
      .filter(isSource)
      .flatMap(({ path, imports }) =>
        imports
          .filter(({ kind }) => kind === 'export-all')
          .map(
            ({ line, specifier }) =>
              `${folder}/${path}:${line} exports all of ${specifier}, not name by name`,
          ),
      ),
  ]
}

/** A dependency that no source imports is a leftover. */
function unused(each: Package): string[] {
  if (isTool(each)) return []
  const imported = new Set(
    each.files
      .filter(isSource)
      .flatMap(({ imports }) => imports.map(({ specifier = '' }) => packageOf(specifier))),
  )
  return Object.keys(each.manifest.dependencies ?? {})
    .filter(name => !imported.has(name))
    .map(name => `${each.folder} depends on ${name} and never imports it`)
}
