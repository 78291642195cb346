import { expect, test } from 'vitest'
import { growthTable } from '../src/growth.ts'
import { cell, type Measurement, type Run, report } from '../src/report.ts'

const measurement = (target: string, round: number, perSecond: number): Measurement => ({
  scenario: 'creates',
  connections: 64,
  target,
  round,
  requests: perSecond,
  created: perSecond,
  perSecond,
  p50Ms: 2,
  p99Ms: 5.5,
  processorMicros: 20,
})

const run: Run = {
  machine: '2 cores',
  createsPerFsync: 12.34,
  seed: 1,
  rounds: 3,
  seconds: 1,
  targets: [
    { name: 'ours', title: 'Plant store (this)', promised: 'durable' },
    { name: 'fastify-full', title: 'Fastify & better-sqlite3', promised: 'durable' },
    { name: 'bun-normal', title: 'Bun', promised: 'not durable' },
    { name: 'node-http', title: 'node:http', promised: 'nothing kept' },
  ],
  measurements: [
    ...[18_000, 2_000, 20_000].map((rate, round) => measurement('ours', round, rate)),
    ...[2_000, 200, 2_500].map((rate, round) => measurement('fastify-full', round, rate)),
    ...[9_000, 1_000, 9_000].map((rate, round) => measurement('bun-normal', round, rate)),
    ...[20_000, 2_000, 20_000].map((rate, round) => measurement('node-http', round, rate)),
  ],
}

test('a cell is of medians, and its ratio of rounds', () => {
  expect(cell(run, 'creates', 64, 'fastify-full')).toEqual({
    perSecond: 2_000,
    p50Ms: 2,
    p99Ms: 5.5,
    processorMicros: 20,
    ratio: 9,
  })
  expect(cell(run, 'creates', 64, 'ours')).not.toHaveProperty('ratio')
  expect(cell(run, 'reads', 64, 'ours')).toBeUndefined()
})

test('a report shows rates, ratios, latencies and whether the aims are met', () => {
  const page = report(run, 'benchmark.svg')
  expect(page).toContain('![Creates a second, ours beside the others](benchmark.svg)')
  expect(page).toMatch(/\| Fastify & better-sqlite3 \(durable\) +\| +2,000 \(9\.00 ×\) \|/)
  expect(page).toMatch(/\| Plant store \(this\) \(durable\) +\| +2\.00 \/ 5\.50 \|/)
  expect(page).toMatch(/beside Fastify & better-sqlite3 +\| +8\.00 × \| +9\.00 × \| +yes \|/)
  expect(page).toMatch(/beside node:http +\| +1\.00 × \| +1\.00 × \| +yes \|/)
  expect(page).toMatch(
    /Processor time of a create, 64 connections, at most +\| +18\.0 µs \| +20\.0 µs \| +no \|/,
  )
  expect(page).toMatch(/Creates an fsync, 64 clients +\| +8 \| +12\.3 \| +yes \|/)
  expect(page).not.toContain('Reads')
})

test('the table of growth compares stores, and pages with the first one', () => {
  const rounds = (perSecond: number) => [1, 2, 3].map(round => measurement('ours', round, perSecond))
  const text = growthTable(
    Array.from({ length: 6 }, (_, row) => [rounds(1_000), rounds(900 - row)]),
    10_000_000,
  )
  expect(text).toContain('10,000,000 plants, /s')
  expect(text).toMatch(/create \(64 connections\) +\| +1,000 \| +900 \| +0\.90 × \|/)
  expect(text).toMatch(/common tag \(1 connection\).*1\.00 × \|/)
})
