import {
  globSync,
  mkdirSync,
  mkdtempDisposableSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { drawPackages, manifestsOf, readImports } from './imports.ts'

const root = join(import.meta.dirname, '../../..')
const { modules, faults } = await readImports(root)

test('the imports of the sources break no rule', () => {
  expect(modules.length).toBeGreaterThan(250)
  expect(faults).toEqual([])
})

test.each([
  [
    'a forbidden module of Node',
    { 'domain/src/a.ts': "import 'node:fs'" },
    'of Node only ^assert in domain: packages/domain/src/a.ts → fs',
  ],
  [
    'a cycle of folders',
    {
      'domain/src/a/one.ts':
        "import type { Two } from '../b/two.ts'\nexport type One = Two",
      'domain/src/a/three.ts': 'export type Three = 3',
      'domain/src/b/two.ts': 'export type Two = 2',
      'domain/src/b/four.ts':
        "import type { Three } from '../a/three.ts'\nexport type Four = Three",
    },
    'folders have one direction: packages/domain/src/a → packages/domain/src/b',
  ],
  [
    'what is not declared',
    { 'domain/src/a.ts': "import 'fastify'" },
    'what is imported is declared: packages/domain/src/a.ts → fastify',
  ],
])('%s is noticed', async (_, files: Readonly<Record<string, string>>, fault) => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'plant-store-'))
  const planted = folder.path
  for (const [name, code] of Object.entries(files)) {
    const file = join(planted, 'packages', name)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, `${code}\n`)
  }
  writeFileSync(join(planted, 'packages/domain/package.json'), '{"name": "domain"}')

  const found = await readImports(planted)

  expect(found.faults).toContain(fault)
})

test('builds and scripts of the product name no tooling', () => {
  const names = manifestsOf(root, 'tooling/*').map(({ manifest }) => manifest.name)
  const tooling = new RegExp(`\\btooling/|(${names.join('|')})['"/]`)
  const builds = globSync('{apps,packages}/*/*.{ts,cjs}', { cwd: root }).filter(
    file => !file.endsWith('/vitest.config.ts'),
  )
  const texts = [...builds, 'turbo.json'].map(
    file => [file, readFileSync(join(root, file), 'utf8')] as const,
  )
  const scripts = manifestsOf(root, '{apps,packages}/*').map(
    ({ file, manifest: { scripts, dependencies } }) =>
      [file, JSON.stringify([scripts, dependencies])] as const,
  )

  const naming = [...texts, ...scripts].filter(([, text]) => tooling.test(text))

  expect(builds).toContain('apps/api/bundle.ts')
  expect(naming.map(([file]) => file)).toEqual([])
})

test('scripts need no POSIX shell, and build before they pack', () => {
  const manifests = manifestsOf(root, '{.,{apps,packages,tooling}/*}')
  const ofShell = /[$`;'|<>]|(?<!-)\b(exec|rm|cp|env|export)\b|^\w+=|&& *\w+=/

  const scripts = manifests.flatMap(({ manifest }) =>
    Object.values<string>(manifest.scripts ?? {}),
  )
  const published = manifests.filter(({ manifest }) => !manifest.private)

  expect(scripts.filter(script => ofShell.test(script))).toEqual([])
  expect(published.length).toBe(4)
  for (const { file, manifest } of published) {
    expect(manifest.scripts.prepack, file).toMatch(/turbo run build$/)
  }
})

test('the root declares no runtime dependency, which all packages would see', () => {
  const [{ manifest } = { manifest: {} }] = manifestsOf(root, '.')

  expect(manifest.dependencies ?? {}).toEqual({})
})

test('the page on the architecture shows the packages as they are', async () => {
  const file = join(root, 'docs/architecture.md')
  const page = readFileSync(file, 'utf8')
  const [begin, end] = [/^<!-- packages: .*-->\n/m, '\n<!-- /packages -->']
  const [before = '', after = ''] = page.split(begin)
  const [comment = ''] = begin.exec(page) ?? []
  const rest = after.slice(after.indexOf(end))

  const drawn = `${before}${comment}${drawPackages(root, modules)}${rest}`

  const hint = 'run pnpm --filter @plant-store/boundaries draw'
  await expect(drawn).toMatchFileSnapshot(file, hint)
  expect(page).toContain('  persistence --> engine\n')
})
