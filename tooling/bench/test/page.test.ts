import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { introductionOf } from '../src/page.ts'
import { parts } from '../src/parts.ts'
import { drawCreates, themes } from '../src/picture.ts'
import { median, ratioOf } from '../src/table.ts'

const docs = join(import.meta.dirname, '../../../docs')
const page = readFileSync(join(docs, 'benchmark.md'), 'utf8')

test('the page has the words and the sections that the benchmark writes', () => {
  const headings = [...page.matchAll(/^## (.*)$/gm)].map(([, heading]) => heading)
  const titles = Object.values(parts).map(({ title }) => title)

  const introduction = introductionOf({ rounds: 5, warmUpSeconds: 15, plantsInFile: 0 })
  expect(page.startsWith(introduction), introduction).toBe(true)
  expect(headings).toEqual([...titles, 'Machine'])
})

test('every ratio of the page follows from the figures beside it', () => {
  const tables = page.split(/^## /m).map(section => {
    const lines = section.split('\n').filter(line => /^\| .*\| \d/.test(line))
    return lines.map(line => line.split('|').map(cell => cell.trim()))
  })
  const ratios = tables.flatMap(rows =>
    rows.flatMap(row => {
      const at = row.findIndex(cell => cell.endsWith(' ×'))
      // Rows with as many connections are compared with the first of them, which is ours.
      const hasConnections = at === 4
      const base = rows.find(other => !hasConnections || other[2] === row[2])
      const [figure = '', other = ''] = [row[at - 1], base?.[at - 1]]
      const expected = hasConnections ? ratioOf(other, figure) : ratioOf(figure, other)
      return at === -1 ? [] : [{ row: row.join(' | '), shown: row[at], expected }]
    }),
  )

  expect(ratios.length).toBeGreaterThan(15)
  for (const { row, shown, expected } of ratios) {
    expect(shown, row).toBe(expected)
  }
})

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

test('a median is the middle value, or halfway between the middle two', () => {
  expect(median([3, 1, 10])).toBe(3)
  expect(median([4, 1, 3, 10])).toBe(3.5)
})
