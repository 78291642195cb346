import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { cruise, type IForbiddenRuleType, type IModule } from 'dependency-cruiser'

/** The modules of Node that sources may import, of packages that may not import all. */
const modulesOfNode: Readonly<Record<string, string>> = {
  access: '^crypto$',
  browse: '^$',
  client: '^$',
  domain: '^assert',
  json: '^$',
  jwt: '^(events|https?)$',
  persistence: '^assert',
  webhooks: '^(assert/strict|crypto|timers/promises)$',
}

const source = '^(?:apps|packages)/([^/]+)/src/'

const severity = 'error' as const
const rules: readonly IForbiddenRuleType[] = [
  {
    name: 'no cycle of files, except by types',
    severity,
    from: {},
    to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
  },
  {
    name: 'folders have one direction',
    severity,
    scope: 'folder',
    from: {},
    to: { circular: true },
  },
  // pnpm finds nothing that `package.json` does not declare.
  {
    name: 'what is imported is declared',
    severity,
    from: {},
    to: { couldNotResolve: true },
  },
  {
    name: 'no dependency of development, which only apps/cli bundles',
    severity,
    from: { pathNot: '^apps/cli/' },
    to: { dependencyTypes: ['npm-dev', 'npm-no-pkg'] },
  },
  {
    name: 'no testing of other packages, except by testing',
    severity,
    from: { path: source, pathNot: '/testing/' },
    to: { path: '/testing/', pathNot: '^(?:apps|packages)/$1/' },
  },
  { name: 'no tooling', severity, from: {}, to: { path: '^tooling/' } },
  {
    name: 'persistence and http never see each other',
    severity,
    from: { path: '^packages/(persistence|http)/' },
    to: { path: '^packages/(persistence|http)/', pathNot: '^packages/$1/' },
  },
  ...Object.entries(modulesOfNode).map(([name, allowed]) => ({
    name: `of Node only ${allowed} in ${name}`,
    severity,
    from: { path: `^packages/${name}/` },
    to: { dependencyTypes: ['core' as const], pathNot: allowed },
  })),
]

/**
 * Reads what the sources of the programs and packages import. The faults are the imports
 * that break a rule, a line each.
 */
export async function readImports(root: string) {
  const { output } = await cruise(
    globSync('{apps,packages}/*/src', { cwd: root }),
    {
      baseDir: root,
      ruleSet: { forbidden: [...rules] },
      validate: true,
      metrics: true,
      tsPreCompilationDeps: true,
      doNotFollow: { path: 'node_modules' },
    },
    {
      conditionNames: ['plant-store-source', 'import', 'node'],
      exportsFields: ['exports'],
    },
  )
  if (typeof output === 'string') {
    throw new Error(`dependency-cruiser has no result, and says ${output}`)
  }
  const faults = output.summary.violations.map(
    ({ rule, from, to }) => `${rule.name}: ${from} → ${to}`,
  )
  return { modules: output.modules, faults }
}

/** The programs and packages and what their sources import, as Mermaid draws it. */
export function drawPackages(root: string, modules: readonly IModule[]): string {
  const nodes: string[] = []
  const arrows: string[] = []
  for (const folder of globSync('{apps,packages}/*/', { cwd: root }).sort()) {
    const name = basename(folder)
    const own = modules.filter(module => module.source.startsWith(`${folder}/`))
    const imported = own.flatMap(module => module.dependencies)
    const outside = imported
      .filter(({ resolved }) => resolved.includes('node_modules/'))
      .map(({ module }) => /^(@[^/]+\/)?[^/]+/.exec(module)?.[0] ?? module)
    const ours = imported
      .map(({ resolved }) => /^(?:apps|packages)\/([^/]+)\//.exec(resolved)?.[1] ?? name)
      .filter(each => each !== name)
    const label = [`<b>${folder}</b>`, [...new Set(outside)].sort().join(', ')]
    nodes.push(`  ${name}["${label.filter(Boolean).join('<br/>')}"]`)
    arrows.push(...[...new Set(ours)].sort().map(each => `  ${name} --> ${each}`))
  }
  return ['```mermaid', 'flowchart TD', ...nodes, ...arrows, '```'].join('\n')
}

/** The names and values of the manifests of a kind of folders. */
export const manifestsOf = (root: string, pattern: string) =>
  globSync(`${pattern}/package.json`, { cwd: root }).map(file => ({
    file,
    manifest: JSON.parse(readFileSync(join(root, file), 'utf8')),
  }))
