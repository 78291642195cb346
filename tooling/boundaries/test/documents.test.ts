import { spawnSync } from 'node:child_process'
import {
  globSync,
  mkdirSync,
  mkdtempDisposableSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '../../..')
const markdownlint = join(root, 'node_modules/markdownlint-cli2/markdownlint-cli2-bin.mjs')

const exclude = (path: string) => /(^|\/)(node_modules|dist)$/.test(path)
const files = globSync('{*,{apps,packages,tooling,docs,deploy,.changeset}/**/*}', { cwd: root, exclude })
const documents = files.filter(path => path.endsWith('.md'))

/** Documents with one fault each, and the rule that finds it. */
const faults: Readonly<Record<string, readonly [text: string, rule: string]>> = {
  'a level is skipped': ['# A\n\n### B\n', 'MD001'],
  'siblings have one name': ['# A\n\n## B\n\n## B\n', 'MD024'],
  'a block names no language': ['```\ntext\n```\n', 'MD040'],
  'a name is misspelt': ['It runs on Sqlite.\n', 'MD044'],
  'a fragment leads nowhere': ['# A\n\n[a](#b)\n', 'MD051'],
  'a link leads nowhere': ['[a](none.md)\n', 'relative-links'],
  'a fragment of another page leads nowhere': ['[a](other.md#none)\n', 'relative-links'],
}

test('the rules of pnpm check find each fault, and none in a sound document', () => {
  using temporary = mkdtempDisposableSync(join(tmpdir(), 'plant-store-documents-'))
  const folder = realpathSync(temporary.path)
  mkdirSync(join(folder, '.changeset'))
  for (const [name, [text]] of Object.entries(faults))
    writeFileSync(join(folder, `.changeset/${name}.md`), text)
  writeFileSync(join(folder, '.changeset/other.md'), '# Title\n')
  writeFileSync(join(folder, 'sound.md'), '# A\n\n[A link](.changeset/other.md#title).\n')

  const config = join(root, '.markdownlint-cli2.jsonc')
  const args = [markdownlint, '--config', config]
  const { stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' })
  const found = [...stderr.matchAll(/^\.changeset\/(.*)\.md:\d+(?::\d+)? error ([\w-]+)/gm)]
  expect(found.map(([, name, rule]) => [name, rule]).sort()).toEqual(
    Object.entries(faults)
      .map(([name, [, rule]]) => [name, rule])
      .sort(),
  )
  expect(stderr.trim().split('\n')).toHaveLength(found.length)
})

test('documents name files that exist, and what is in them', () => {
  const texts = documents.map(path => readFileSync(join(root, path), 'utf8'))
  const fileOf = (name: string) => files.find(path => `/${path}`.endsWith(`/${name}`))
  const find = (pattern: RegExp) => texts.flatMap(text => [...text.matchAll(pattern)])

  const named = find(/`([\w@][\w./-]*\.(?:[cm]?[jt]s|json|ya?ml|md))`/g).map(([, name]) => name as string)
  expect(named.length).toBeGreaterThan(50)
  expect(named.filter(name => !fileOf(name))).toEqual([])

  const declared = find(/`(\w+)`\s+(?:in|of)\s+`([\w./-]+\/[\w./-]+\.ts)`/g)
  expect(declared.length).toBeGreaterThan(3)
  for (const [text, name, path = ''] of declared) {
    const source = readFileSync(join(root, fileOf(path) as string), 'utf8')
    expect(source, text).toMatch(new RegExp(`\\b${name}\\b`))
  }
})

test('the README is short, and its figures are those of the benchmark', () => {
  const readme = readFileSync(join(root, 'README.md'), 'utf8')
  expect(readme.trimEnd().split('\n').length).toBeLessThanOrEqual(100)

  const benchmark = readFileSync(join(root, 'docs/benchmark.md'), 'utf8')
  const sections = new Map(
    benchmark
      .split(/^## /m)
      .map(section => [section.split('\n', 1)[0]?.toLowerCase().replaceAll(' ', '-'), section]),
  )
  const linked = [...readme.matchAll(/\[([^\]]+)\]\(docs\/benchmark\.md#([\w-]+)\)/g)]
  const figures = linked.flatMap(([, text = '', section = '']) =>
    [...text.matchAll(/\d[\d,.]*\d/g)].map(([figure]) => ({ figure, section })),
  )
  expect(figures.length).toBeGreaterThanOrEqual(4)
  for (const { figure, section } of figures)
    expect(sections.get(section)?.split(/[^\d,.]+/)).toContain(figure)
})

test('what a page tells glibc is set wherever the page says so', () => {
  const page = readFileSync(join(root, 'docs/settings.md'), 'utf8')
  const settings = [...page.matchAll(/`(MALLOC_\w+)=(\d+)`/g)]
  expect(settings).toHaveLength(2)
  const places = ['package.json', 'deploy/Dockerfile']
  for (const path of [...places, 'tooling/release/src/plant-store.sh', 'tooling/release/src/image.ts'])
    for (const [, name, value] of settings)
      expect(readFileSync(join(root, path), 'utf8'), path).toMatch(
        new RegExp(`\\b${name}=("\\$\\{${name}:-)?${value}\\b`),
      )
})

test('each decision is in the index, has the same parts, and is short', () => {
  const decisions = documents.filter(path => path.startsWith('docs/decisions/0'))
  const index = readFileSync(join(root, 'docs/decisions/README.md'), 'utf8')
  expect(decisions.length).toBeGreaterThanOrEqual(14)
  for (const path of decisions) {
    const page = readFileSync(join(root, path), 'utf8')
    expect(index).toContain(`](${basename(path)})`)
    const headings = [...page.matchAll(/^## (.*)$/gm)].map(([, heading]) => heading)
    expect(headings, path).toEqual(['Context', 'Decision', 'Price', 'Rejected'])
    expect(page.trimEnd().split('\n').length, path).toBeLessThanOrEqual(60)
  }
})
