import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { creators, ours } from '../src/contestants.ts'
import { page } from '../src/page.ts'
import { createsSection } from '../src/parts/creates.ts'
import { median, medianRatio } from '../src/table.ts'

test('the page has the picture, every contestant, and the aims that are met and missed', () => {
  const rounds = (...rates: readonly number[]) =>
    rates.map(perSecond => ({
      ...{ requests: perSecond, perSecond, p50Ms: 2, p99Ms: 15.5, processorMicros: 20, mebibytes: 150 },
    }))
  const theirs = creators.slice(1).map(() => rounds(2_000, 200, 2_500))
  const loads = [1, 2, 3].map(() => [rounds(18_000, 2_000, 20_000), ...theirs])
  const section = createsSection(creators, loads)
  const text = page([section], { machine: '2 cores', rounds: 3 })

  expect(text).toMatch(/^# Benchmark\n\n!\[.*\]\(benchmark\.svg\)\n/)
  expect(text).toMatch(
    /\| Creates, 64 .* Fastify \+ better-sqlite3, FULL +\| at least 8\.00 × \| +9\.00 × \| yes \|/,
  )
  expect(text).toMatch(/\| Processor time of a create.* \| +at most 18\.0 µs \| +20\.0 µs \| +no \|/)
  expect(text).toMatch(
    /\| Fastify, no store \(nothing kept\) +\| +2,000 \| +9\.00 × \| +2\.00 \| +15\.5 \| +20\.0 \| +150 \|/,
  )
  expect(text).toContain('median of 3')
  for (const { title } of creators) expect(section.picture).toContain(title)
})

test('a median is the middle, or between the two in the middle', () => {
  expect(median([3, 1, 10])).toBe(3)
  expect(median([4, 1, 3, 10])).toBe(3.5)
  expect(() => median([])).toThrow('no values')
})

test('a ratio is of rounds that ran beside each other', () => {
  expect(medianRatio([100, 10, 60], [50, 5, 20])).toBe(2)
})

test('the service is measured with the settings of pnpm start', () => {
  const root = new URL('../../../', import.meta.url)
  const { scripts } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'))
  const settings = Object.entries(ours.environment ?? {}).map(([name, value]) => `${name}=${value}`)
  const [, ...args] = ours.command()
  expect(scripts.start).toMatch(new RegExp(`${[...settings, ...args].join(' ').replace(root.pathname, '')}$`))
})
