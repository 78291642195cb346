import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { needs, temporaryFolder } from '@plant-store/harness/vitest'
import { describe, expect, test } from 'vitest'
import { metrics } from '../src/telemetry/metrics.ts'

const read = (file: string) => readFileSync(new URL(`../../../deploy/${file}`, import.meta.url), 'utf8')

interface Dashboard {
  readonly panels: readonly {
    readonly title: string
    readonly targets: readonly { readonly expr: string }[]
  }[]
}

/** Each `expr` of the file, on one line or folded over several. */
const alerts = [...read('alerts.yml').matchAll(/- alert: (\w+)\n +expr: (?:>-\n)?(.+(?:\n {10}.+)*)/g)].map(
  ([, name = '', expr = '']) => [name, expr] as const,
)
const panels = (JSON.parse(read('grafana-dashboard.json')) as Dashboard).panels.flatMap(
  ({ title, targets }) => targets.map(({ expr }) => [title, expr] as const),
)

/** What is left of a query without functions, labels, times and operators. */
function metricsIn(query: string): string[] {
  const bare = query
    .replaceAll(/\{[^}]*\}|\[[^\]]*\]/g, '')
    .replaceAll(/\b(?:by|without|on|ignoring)\s*\([^)]*\)/g, '')
  return bare.match(/\b[a-z_][\w:]*\b(?!\s*\()/gi) ?? []
}

const served = Object.entries(metrics).flatMap(([name, [type]]) =>
  (type === 'histogram' ? ['_bucket', '_sum', '_count'] : ['']).map(suffix => name + suffix),
)
// Prometheus adds `up` for each target.
const names = new Set(['up', ...served])

test('there are alerts and panels, and every alert is read', () => {
  expect(alerts).toHaveLength(read('alerts.yml').match(/- alert:/g)?.length as number)
  expect(alerts.length).toBeGreaterThan(4)
  expect(panels.length).toBeGreaterThan(10)
})

describe('names only metrics that the service has:', () => {
  test.each([...alerts, ...panels])('%s', (_, query) => {
    const found = metricsIn(query)
    expect(found.length).toBeGreaterThan(0)
    expect(found.filter(name => !names.has(name))).toEqual([])
  })
})

const hasPromtool = spawnSync('promtool', ['--version']).status === 0

/** Whether the alert fires in Prometheus after 27 hours with this time of the last backup, in hours after the start. */
function firesWithout(lastBackup: number | undefined): string {
  const folder = temporaryFolder()
  const series = 'plant_store_last_backup_timestamp_seconds{instance="a"}'
  const input = lastBackup === undefined ? [] : [{ series, values: `${lastBackup * 3600}x1700` }]
  const alerts = [{ alertname: 'PlantStoreBackupLate', eval_time: '27h', exp_alerts: [] }]
  const file = join(folder, 'test.yml')
  // JSON is YAML.
  const rules = fileURLToPath(new URL('../../../deploy/alerts.yml', import.meta.url))
  const tests = [{ interval: '1m', input_series: input, alert_rule_test: alerts }]
  writeFileSync(file, JSON.stringify({ rule_files: [rules], tests }))
  return spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8' }).stderr
}

test(
  'an old backup fires, and so does none; a recent one and PostgreSQL do not',
  needs('promtool', hasPromtool),
  () => {
    const fires = /got:.*Labels:\{alertname="PlantStoreBackupLate", instance="a"\}/s
    expect(firesWithout(0)).toMatch(fires)
    expect(firesWithout(0.9)).toMatch(fires)
    expect(firesWithout(2)).toBe('')
    expect(firesWithout(undefined)).toBe('')
  },
)
