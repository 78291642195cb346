import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  drawPackages,
  importsOf,
  type Package,
  readWorkspace,
  rootViolations,
  table,
  violations,
  withPicture,
} from '@plant-store/boundaries'
import { describe, expect, test } from 'vitest'

const root = join(import.meta.dirname, '../../..')
const { packages, rootManifest } = readWorkspace(root)
const find = (folder: string) => packages.find(each => each.folder === folder) as Package
const sourcesOf = ({ files }: Package) => files.filter(({ path }) => path.startsWith('src/'))

describe('everything is looked at:', () => {
  test('every package of the table, and the programs', () => {
    const folders = packages.map(({ folder }) => folder)
    expect(folders).toEqual(expect.arrayContaining(Object.keys(table).map(name => `packages/${name}`)))
    expect(folders.filter(folder => folder.startsWith('packages/')).length).toBe(Object.keys(table).length)
    expect(folders).toContain('apps/api')
    for (const each of packages) expect(sourcesOf(each).length, each.folder).toBeGreaterThan(0)
  })

  test('every file and import of them', () => {
    const shipped = packages.filter(({ folder }) => !folder.startsWith('tooling/')).flatMap(sourcesOf)
    const imports = shipped.flatMap(file => file.imports)
    expect(shipped.length).toBeGreaterThanOrEqual(42)
    expect(imports.length).toBeGreaterThanOrEqual(110)
    expect(imports.map(({ kind }) => kind)).toEqual(
      expect.arrayContaining(['import', 'export', 'type', 'load']),
    )
  })

  test('as many imports as lines of the sources end in one', () => {
    for (const each of packages) {
      for (const { path, imports } of sourcesOf(each)) {
        const lines = readFileSync(join(root, each.folder, path), 'utf8').match(
          /^(?:import |export |} ).*from '[^']+'$|^import '[^']+'$/gm,
        )
        const found = imports.filter(({ kind }) => ['import', 'export', 'export-all', 'type'].includes(kind))
        expect(found.length, `${each.folder}/${path}`).toBeGreaterThanOrEqual(lines?.length ?? 0)
      }
    }
  })
})

test.each(packages.map(each => [each.folder, each] as const))('%s keeps the rules', (_, each) => {
  expect(violations(each, packages)).toEqual([])
})

test('nothing is declared at the root for everybody', () => {
  expect(rootViolations(rootManifest)).toEqual([])
})

test.each([
  ['packages/domain', "import { readFile } from 'node:fs/promises'", 'may not import'],
  ['packages/http', "import type { Storage } from '@plant-store/persistence'", 'may not import'],
  ['packages/persistence', "import { plantRoutes } from '@plant-store/http'", 'may not import'],
  ['apps/api', "import { parsePlant } from '@plant-store/domain/dist/plant.js'", 'does not export'],
])('in %s as it is, one line more would be caught: %s', (folder, line, complaint) => {
  const each = find(folder)
  const more = { path: 'src/more.ts', imports: importsOf('src/more.ts', line) }
  expect(violations({ ...each, files: [...each.files, more] }, packages)).toEqual([
    expect.stringContaining(complaint),
  ])
})

test('the page on the architecture shows the packages as they are', () => {
  const page = readFileSync(join(root, 'docs/architecture.md'), 'utf8')
  expect(page, 'draw it anew: pnpm --filter @plant-store/boundaries draw').toBe(
    withPicture(page, drawPackages(packages)),
  )
  // What the picture is made of, so that an empty one can not agree with an empty page.
  for (const arrow of ['api --> http', 'http --> domain', 'persistence --> domain'])
    expect(page).toContain(`  ${arrow}\n`)
})

test('the page on the architecture names files that are there, and what is in them', () => {
  const page = readFileSync(join(root, 'docs/architecture.md'), 'utf8')
  const files = [...page.matchAll(/`((?:packages|apps|tooling)\/[\w./-]+\.\w+)`/g)].map(
    ([, path]) => path as string,
  )
  expect(files.length).toBeGreaterThan(20)
  for (const path of files) expect(() => readFileSync(join(root, path)), path).not.toThrow()

  const named = [...page.matchAll(/`(\w+)`\s+in\s+`([\w./-]+\.ts)`/g)]
  expect(named.length).toBeGreaterThan(10)
  for (const [text, name, path] of named) {
    const source = readFileSync(join(root, path as string), 'utf8')
    expect(source, text).toMatch(new RegExp(`\\b${name}\\(|\\bconst ${name}\\b`))
  }
})
