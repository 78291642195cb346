import { globSync, readFileSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
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
    const isAllowed = (imported: string) => {
      if (imported.startsWith('node:')) {
        return modulesOfNode[basename(folder)]?.test(imported) ?? true
      }
      const isDeclared = declared.some(name => `${imported}/`.startsWith(`${name}/`))
      return isDeclared && !imported.endsWith('/testing')
    }
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
    const source = readFileSync(file, 'utf8')
    const imported = [...source.matchAll(/(?:from |import |import\()'(\.[^']+)'/g)]
    const from = folderOf(file)
    const paths = imported.map(([, path]) => join(file, '..', `${path}`))
    const targets = paths.map(folderOf)
    return targets.filter(to => to !== from).map(to => `${from} ${to}`)
  })
  return new Set(imports)
}

/** Returns the imports that are part of a circle. */
function circlesIn(imports: ReadonlySet<string>): string[] {
  const left = new Set(imports)
  for (let size = -1; size !== left.size; ) {
    size = left.size
    const pairs = [...left].map(pair => pair.split(' '))
    const froms = new Set(pairs.map(([from]) => from))
    const tos = new Set(pairs.map(([, to]) => to))
    for (const [from, to] of pairs) {
      if (!tos.has(from) || !froms.has(to)) {
        left.delete(`${from} ${to}`)
      }
    }
  }
  return [...left]
}

test('a circle of imports is found without those that only lead to it', () => {
  const circles = circlesIn(new Set(['a b', 'b c', 'c a', 'c d']))

  expect(circles).toEqual(['a b', 'b c', 'c a'])
})

test('the imports between the folders of a package have one direction', () => {
  const packages = globSync('{apps,packages}/*/src', { cwd: root }).map(src => ({
    src,
    imports: importsBetweenFolders(join(root, src)),
  }))
  const sizes = packages.map(({ imports }) => imports.size)

  const circles = packages.flatMap(({ src, imports }) =>
    circlesIn(imports).map(pair => `${src}: ${pair}`),
  )

  expect(Math.max(...sizes)).toBeGreaterThan(20)
  expect(circles).toEqual([])
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

  const texts = [...sources, ...scripts]
  const naming = texts.filter(({ text }) => tooling.test(text))

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
