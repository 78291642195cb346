import { spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '../../..')

const exclude = (path: string) => /(^|\/)(node_modules|dist)$/.test(path)
const files = globSync('{*,{apps,packages,tooling,docs,deploy,.changeset}/**/*}', {
  cwd: root,
  exclude,
})
const documents = files.filter(path => path.endsWith('.md'))

test('documents name files that exist, and what is in them', () => {
  const text = documents.map(path => readFileSync(join(root, path), 'utf8')).join('\n')
  const names =
    text.match(/(?<=`)[\w@][\w./-]*\.(?:[cm]?[jt]s|json|ya?ml|md)(?=`)/g) ?? []
  const isMissing = (name: string) => !files.some(path => `/${path}`.endsWith(`/${name}`))

  expect(names.length).toBeGreaterThan(30)
  expect(names.filter(isMissing)).toEqual([])
})

test('the README is short, and its figures are those of the benchmark', () => {
  const readme = readFileSync(join(root, 'README.md'), 'utf8')
  expect(readme.trimEnd().split('\n').length).toBeLessThanOrEqual(100)

  const benchmark = readFileSync(join(root, 'docs/benchmark.md'), 'utf8')
  const sections = Object.groupBy(benchmark.split(/^## /m), section =>
    section.split('\n', 1).join().toLowerCase().replaceAll(' ', '-'),
  )
  const linked = [...readme.matchAll(/\[([^\]]+)\]\(docs\/benchmark\.md#([\w-]+)\)/g)]
  const figures = linked.flatMap(([, text = '', section = '']) =>
    [...text.matchAll(/\d[\d,.]*\d/g)].map(([figure]) => ({ figure, section })),
  )
  expect(figures.length).toBeGreaterThanOrEqual(4)
  for (const { figure, section } of figures) {
    const figuresOfSection = sections[section]?.join().split(/[^\d,.]+/)
    expect(figuresOfSection, section).toContain(figure)
  }
})

test('what a page tells glibc is set wherever the page says so', () => {
  const page = readFileSync(join(root, 'docs/settings.md'), 'utf8')
  const settings = [...page.matchAll(/`(MALLOC_\w+)=(\d+)`/g)]
  expect(settings).toHaveLength(2)
  for (const path of [
    'package.json',
    'deploy/Dockerfile',
    'tooling/release/src/plant-store.sh',
    'tooling/release/src/image.ts',
  ]) {
    for (const [, name, value] of settings) {
      expect(readFileSync(join(root, path), 'utf8'), path).toMatch(
        new RegExp(`\\b${name}=("\\$\\{${name}:-)?${value}\\b`),
      )
    }
  }
})

test('each decision is in the index, has the same parts, and is short', () => {
  const decisions = documents.filter(path => path.startsWith('docs/decisions/0'))
  const index = readFileSync(join(root, 'docs/decisions/README.md'), 'utf8')
  const numbers = decisions
    .map(path => Number(basename(path).slice(0, 4)))
    .sort((a, b) => a - b)
  expect(numbers, 'no number is missing').toEqual(numbers.map((_, index) => index + 1))
  for (const path of decisions) {
    const page = readFileSync(join(root, path), 'utf8')
    expect(index, path).toContain(`](${basename(path)})`)
    const headings = [...page.matchAll(/^## (.*)$/gm)].map(([, heading]) => heading)
    expect(headings, path).toEqual(['Status', 'Context', 'Decision', 'Consequences'])
    expect(page.trimEnd().split('\n').length, path).toBeLessThanOrEqual(90)
  }
})

/** At night the recipes are checked and tested, and each break must be noticed. */
const patches = globSync(['docs/recipes/*.patch', 'tooling/prove/breaks/*.patch'], {
  cwd: root,
})

test.each(patches)('%s applies to the sources', patch => {
  const { status, stderr } = spawnSync('git', ['apply', '--check', patch], {
    cwd: root,
    encoding: 'utf8',
  })

  expect(status, stderr).toBe(0)
})
