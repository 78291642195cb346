import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { drawCreates, themes } from '../src/picture.ts'

const docs = join(import.meta.dirname, '../../../docs')
const page = readFileSync(join(docs, 'benchmark.md'), 'utf8')

test.each(Object.entries(themes))(
  'the %s picture shows the figures of the page',
  (name, theme) => {
    const picture = readFileSync(join(docs, `benchmark-${name}.svg`), 'utf8')

    expect(drawCreates(page, theme)).toBe(picture)
  },
)

test('a page without creates is refused', () => {
  const draw = () => drawCreates('# Benchmark\n\n## Reads by id\n', themes.light)

  expect(draw).toThrow('the page has no creates of 64 connections')
})
