import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { introduction } from '../src/page.ts'
import { parts } from '../src/parts.ts'
import { drawCreates, themes } from '../src/picture.ts'
import { median } from '../src/table.ts'

const docs = join(import.meta.dirname, '../../../docs')
const page = readFileSync(join(docs, 'benchmark.md'), 'utf8')

test('the page has the words and the sections that the benchmark writes', () => {
  const headings = page.match(/^## .*$/gm)
  const titles = Object.values(parts).map(({ title }) => `## ${title}`)

  expect(page.startsWith(introduction), introduction).toBe(true)
  expect(headings).toEqual([...titles, '## Machine'])
})

test.each(Object.entries(themes))(
  'the %s picture shows the figures of the page',
  (name, theme) => {
    const picture = readFileSync(join(docs, `benchmark-${name}.svg`), 'utf8')

    expect(drawCreates(page, theme)).toBe(picture)
  },
)

test('a median is the middle value', () => {
  expect(median([3, 1, 10])).toBe(3)
})
