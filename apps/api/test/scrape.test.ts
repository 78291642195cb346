import { spawnSync } from 'node:child_process'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { isInstalled } from '@plant-store/harness'
import { needs, temporaryFolder } from '@plant-store/harness/vitest'
import { expect, test, vi } from 'vitest'
import { writeMetrics } from '../src/telemetry/exposition.ts'
import { type Samples, sample } from '../src/telemetry/metrics.ts'
import { createScrape } from '../src/telemetry/scrape.ts'

const text = writeMetrics([
  {
    http_requests_total: [
      sample(2, { method: 'GET', status: 200 }),
      sample(1, { method: 'PUT', status: 200 }),
    ],
  },
  {
    plant_store_failure: [sample(1, { reason: 'C:\\"a"\nb' })],
    plant_store_commit_seconds: [sample(0.5, {}, '_sum')],
  },
  { http_requests_total: [sample(3, { method: 'GET', status: 200 })] },
])

test('the text adds up samples with the same labels, and escapes labels', () => {
  const sampleLines = text.match(/^[^#\n].*$/gm)

  expect(sampleLines).toEqual([
    'plant_store_failure{reason="C:\\\\\\"a\\"\\nb"} 1',
    'http_requests_total{method="GET",status="200"} 5',
    'http_requests_total{method="PUT",status="200"} 1',
    'plant_store_commit_seconds_sum 0.5',
  ])
  expect(text).toContain('# TYPE plant_store_ready gauge\n')
})

test('promtool parses the metrics', needs('promtool', isInstalled('promtool')), () => {
  const { status, stderr } = spawnSync('promtool', ['check', 'metrics'], {
    input: text,
    encoding: 'utf8',
  })
  // It exits with 3 if it only advises on names, and with 1 if it cannot parse them.
  expect([0, 3], stderr).toContain(status)
})

test('if files and a source fail, other figures and its last samples stay', async () => {
  // A link to itself: to look behind it is an error, and not the absence of a file.
  const loop = join(temporaryFolder(), 'loop')
  symlinkSync(loop, loop)
  const source = vi.fn(() => Promise.reject<Samples>(new Error('on purpose')))
  const scrape = createScrape(`file:${loop}/store.db`, () => 'it is gone', [source])
  const figures = await scrape()
  expect(figures).toMatch(/^plant_store_ready 0$/m)
  expect(figures).not.toMatch(/^plant_store_size_bytes \d/m)
  source.mockResolvedValueOnce({ plant_store_commit_seconds: [sample(0.5, {}, '_sum')] })
  const sum = /^plant_store_commit_seconds_sum 0\.5$/m
  expect(await scrape(), 'while the source works').toMatch(sum)
  expect(await scrape(), 'once it fails again').toMatch(sum)
})
