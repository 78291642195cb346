import { globSync, readFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { expect, test } from 'vitest'
import { drawPackages, importsIn, withPicture } from './picture.ts'

const root = join(import.meta.dirname, '../../..')
const pageFile = join(root, 'docs/architecture.md')
const page = readFileSync(pageFile, 'utf8')

/** The modules of Node that sources may import, of packages that may not import all. */
const modulesOfNode: Readonly<Record<string, RegExp>> = {
  access: /^node:crypto$/,
  browse: /^$/,
  client: /^$/,
  domain: /^node:assert\b/,
  json: /^$/,
  jwt: /^$/,
  persistence: /^node:assert\b/,
  webhooks: /^node:(crypto|timers\/promises)$/,
}

test('sources import what their package declares, and no testing of others', () => {
  const packages = globSync('packages/*', { cwd: root }).map(folder => basename(folder))
  expect(packages).toEqual(expect.arrayContaining(Object.keys(modulesOfNode)))
  const forbidden = globSync('{apps,packages}/*/', { cwd: root }).flatMap(folder => {
    const { dependencies, devDependencies } = JSON.parse(
      readFileSync(join(root, folder, 'package.json'), 'utf8'),
    )
    // Bundled dependencies need not be installed, so they are declared for development.
    const bundled = basename(folder) === 'cli' && devDependencies
    const declared = Object.keys({ ...dependencies, ...bundled })
    const isAllowed = (imported: string) =>
      imported.startsWith('node:')
        ? (modulesOfNode[basename(folder)]?.test(imported) ?? true)
        : declared.some(name => imported === name || imported.startsWith(`${name}/`)) &&
          !imported.endsWith('/testing')
    return importsIn(join(root, folder))
      .filter(imported => !isAllowed(imported))
      .map(imported => `${folder}: ${imported}`)
  })
  expect(forbidden).toEqual([])
})

/**
 * Returns the imports between the folders of a package, and files beside these, as `from
 * to`. Types count too.
 */
function importsBetweenFolders(src: string): ReadonlySet<string> {
  const folderOf = (file: string) => relative(src, file).split('/')[0]
  const imports = globSync('**/*.ts', { cwd: src }).flatMap(name => {
    const file = join(src, name)
    const imported = [
      ...readFileSync(file, 'utf8').matchAll(/(?:from |import |import\()'(\.[^']+)'/g),
    ]
    return imported.map(
      ([, path = '']) => [folderOf(file), folderOf(join(dirname(file), path))] as const,
    )
  })
  return new Set(imports.filter(([from, to]) => from !== to).map(pair => pair.join(' ')))
}

/** Returns the imports that are part of a circle. */
function circlesIn(imports: ReadonlySet<string>): string[] {
  const left = new Set(imports)
  for (let size = -1; size !== left.size; ) {
    size = left.size
    const [froms, tos] = [0, 1].map(
      at => new Set([...left].map(pair => pair.split(' ')[at])),
    )
    for (const pair of left) {
      const [from, to] = pair.split(' ')
      if (!tos?.has(from) || !froms?.has(to)) {
        left.delete(pair)
      }
    }
  }
  return [...left]
}

test('the imports between the folders of a package have one direction', () => {
  expect(circlesIn(new Set(['a b', 'b c', 'c a', 'c d']))).toEqual(['a b', 'b c', 'c a'])
  const sources = globSync('{apps,packages}/*/src', { cwd: root })
  const found = sources.map(src => [src, importsBetweenFolders(join(root, src))] as const)
  expect(Math.max(...found.map(([, imports]) => imports.size))).toBeGreaterThan(20)
  expect(
    found.flatMap(([src, imports]) => circlesIn(imports).map(pair => `${src}: ${pair}`)),
  ).toEqual([])
})

test('sources, builds and scripts of the product name no tooling', () => {
  const toolingNames = globSync('tooling/*/package.json', { cwd: root }).map(
    manifest => JSON.parse(readFileSync(join(root, manifest), 'utf8')).name,
  )
  const tooling = new RegExp(`\\btooling/|(${toolingNames.join('|')})['"/]`)
  const files = globSync('{apps,packages}/*/{src/**/*,*.{ts,cjs}}', { cwd: root }).filter(
    file => /\.[cm]?[jt]s$/.test(file) && !file.endsWith('/vitest.config.ts'),
  )
  const scripts = globSync('{apps,packages}/*/package.json', { cwd: root }).map(file => {
    const manifest = JSON.parse(readFileSync(join(root, file), 'utf8'))
    return { file, text: JSON.stringify([manifest.scripts, manifest.dependencies]) }
  })
  const sources = [...files, 'turbo.json'].map(file => ({
    file,
    text: readFileSync(join(root, file), 'utf8'),
  }))

  const naming = [...sources, ...scripts].filter(({ text }) => tooling.test(text))

  expect(files).toContain('apps/api/bundle.ts')
  expect(naming.map(({ file }) => file)).toEqual([])
})

test('the root declares no runtime dependency, which all packages would see', () => {
  const { dependencies = {} } = JSON.parse(
    readFileSync(join(root, 'package.json'), 'utf8'),
  )
  expect(dependencies).toEqual({})
})

test('the page on the architecture shows the packages as they are', async () => {
  const hint = 'run pnpm --filter @plant-store/boundaries draw'
  await expect(withPicture(page, drawPackages(root))).toMatchFileSnapshot(pageFile, hint)
  for (const arrow of [
    'cli --> api',
    'api --> http',
    'http --> domain',
    'persistence --> engine',
  ]) {
    expect(page, arrow).toContain(`  ${arrow}\n`)
  }
})
