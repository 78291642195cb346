import { spawnSync } from 'node:child_process'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { isInstalled } from '@plant-store/harness'
import { needs, temporaryFolder } from '@plant-store/harness/vitest'
import { pino } from 'pino'
import { expect, test, vi } from 'vitest'
import { Distribution } from '../src/telemetry/distribution.ts'
import { writeMetrics } from '../src/telemetry/exposition.ts'
import { type Samples, sample } from '../src/telemetry/metrics.ts'
import { createScrape } from '../src/telemetry/scrape.ts'
import { StoreLog } from '../src/telemetry/store-log.ts'

const commits = new Distribution([0.5, 1])
commits.observe(0.5)
commits.observe(0.75)
commits.observe(2)

const text = writeMetrics([
  {
    http_requests_total: [
      sample(2, { method: 'GET', status: 200 }),
      sample(1, { method: 'PUT', status: 200 }),
    ],
  },
  {
    plant_store_failure: [sample(1, { reason: 'C:\\"a"\nb' })],
    plant_store_commit_seconds: commits.samples(),
  },
  { http_requests_total: [sample(3, { method: 'GET', status: 200 })] },
])

test('the text adds up samples with the same labels, and escapes labels', () => {
  const sampleLines = text.match(/^[^#\n].*$/gm)

  expect(sampleLines).toEqual([
    'plant_store_failure{reason="C:\\\\\\"a\\"\\nb"} 1',
    'http_requests_total{method="GET",status="200"} 5',
    'http_requests_total{method="PUT",status="200"} 1',
    'plant_store_commit_seconds_bucket{le="0.5"} 1',
    'plant_store_commit_seconds_bucket{le="1"} 2',
    'plant_store_commit_seconds_bucket{le="+Inf"} 3',
    'plant_store_commit_seconds_sum 3.25',
    'plant_store_commit_seconds_count 3',
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

  const failing = await scrape()
  source.mockResolvedValueOnce({ plant_store_plants: [sample(5)] })
  const working = await scrape()
  const failingAgain = await scrape()

  expect(failing).toMatch(/^plant_store_ready 0$/m)
  expect(failing).toMatch(/^plant_store_failure\{reason="it is gone"\} 1$/m)
  expect(failing).not.toMatch(/^plant_store_size_bytes \d/m)
  expect(working).toMatch(/^plant_store_plants 5$/m)
  expect(failingAgain).toMatch(/^plant_store_plants 5$/m)
})

test('each reason of an outage is one line, and so is its end', () => {
  const lines: string[] = []
  const write = (line: string) => {
    const { msg, reason } = JSON.parse(line)
    lines.push(reason ?? msg)
  }
  const log = new StoreLog(pino({}, { write }), 'plants.db')
  const one = log.observer(1)
  const other = log.observer(2)

  one.onFailureChange('the connection ended')
  other.onFailureChange('the connection ended')
  one.onFailureChange('nobody listens')
  other.onFailureChange('nobody listens')
  one.onFailureChange('the connection ended')
  const reason = log.reason
  other.onFailureChange(undefined)
  const linesBefore = lines.length
  one.onFailureChange(undefined)
  const reasonAfter = log.reason
  one.onFailureChange('nobody listens')

  expect([reason, reasonAfter, linesBefore]).toEqual([
    'the connection ended',
    undefined,
    2,
  ])
  expect(lines).toEqual([
    'the connection ended',
    'nobody listens',
    'the store has recovered',
    'nobody listens',
  ])
})
