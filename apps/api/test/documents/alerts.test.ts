import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isInstalled } from '@plant-store/harness'
import { needs, temporaryFolder } from '@plant-store/harness/vitest'
import { expect, test } from 'vitest'
import { metrics } from '../../src/telemetry/metrics.ts'

const pathOf = (file: string) =>
  fileURLToPath(new URL(`../../../../deploy/${file}`, import.meta.url))
const alertRules = readFileSync(pathOf('alerts.yml'), 'utf8')
// The assertions on its queries show whether it has this form.
const dashboard = JSON.parse(
  readFileSync(pathOf('grafana-dashboard.json'), 'utf8'),
) as Dashboard

interface Dashboard {
  readonly panels: readonly {
    readonly title: string
    readonly targets: readonly { readonly expr: string }[]
  }[]
}

interface NamedQuery {
  readonly name: string
  readonly query: string
}

/** Finds each `expr` of the rules, on one line or folded over several. */
const alertPattern = /- alert: (\w+)\n +expr: (?:>-\n)?(.+(?:\n {10}.+)*)/g

function alertQueries(): NamedQuery[] {
  const matches = alertRules.matchAll(alertPattern)
  return Array.from(matches, ([, name = '', query = '']) => ({ name, query }))
}

function panelQueries(): NamedQuery[] {
  return dashboard.panels.flatMap(({ title, targets }) =>
    targets.map(({ expr }) => ({ name: title, query: expr })),
  )
}

/** Returns the names in a query, without functions, labels, times and operators. */
function metricsIn(query: string): string[] {
  const bare = query
    .replaceAll(/\{[^}]*\}|\[[^\]]*\]/g, '')
    .replaceAll(/\b(?:by|without|on|ignoring)\s*\([^)]*\)/g, '')
  return bare.match(/\b[a-z_][\w:]*\b(?!\s*\()/gi) ?? []
}

function seriesOf(name: string, type: string): string[] {
  return type === 'histogram'
    ? [`${name}_bucket`, `${name}_sum`, `${name}_count`]
    : [name]
}

const served = Object.entries(metrics).flatMap(([name, [type]]) => seriesOf(name, type))
// Prometheus adds `up` for each target.
const servedNames = new Set(['up', ...served])

test('alerts and panels name only metrics that the service has', () => {
  const alerts = alertQueries()
  const panels = panelQueries()

  expect(alerts.length).toBe(alertRules.match(/- alert:/g)?.length)
  expect(alerts.length).toBeGreaterThan(4)
  expect(panels.length).toBeGreaterThan(10)
  for (const { name, query } of [...alerts, ...panels]) {
    const metricNames = metricsIn(query)
    const unknownNames = metricNames.filter(metric => !servedNames.has(metric))
    expect(metricNames.length, name).toBeGreaterThan(0)
    expect(unknownNames, name).toEqual([])
  }
})

const hour = 3600
const mib = 2 ** 20

interface AlertTest {
  readonly alert: string
  /** What Prometheus scrapes every five minutes. Without it, the series is absent. */
  readonly series?: string
  readonly value?: number
  readonly fires: boolean
}

const backup = 'plant_store_last_backup_timestamp_seconds{instance="a"}'
const memory = 'process_resident_memory_bytes{job="plant-store",instance="a"}'

const alertTests: readonly AlertTest[] = [
  { alert: 'PlantStoreBackupLate', series: backup, value: 0, fires: true },
  { alert: 'PlantStoreBackupLate', series: backup, value: 0.9 * hour, fires: true },
  { alert: 'PlantStoreBackupLate', series: backup, value: 2 * hour, fires: false },
  { alert: 'PlantStoreBackupLate', fires: false },
  // It would be killed at its limit of 512 MiB.
  { alert: 'PlantStoreMemory', series: memory, value: 500 * mib, fires: true },
  { alert: 'PlantStoreMemory', series: memory, value: 400 * mib, fires: false },
]

/** Returns a test of Prometheus: whether an alert fires after 27 hours. */
function ruleTest({ alert, series, value, fires }: AlertTest) {
  return {
    interval: '5m',
    input_series: series === undefined ? [] : [{ series, values: `${value}x330` }],
    promql_expr_test: [
      {
        expr: `count(ALERTS{alertname="${alert}",alertstate="firing",instance="a"})`,
        eval_time: '27h',
        exp_samples: fires ? [{ labels: '{}', value: 1 }] : [],
      },
    ],
  }
}

test(
  'alerts fire for an old or missing backup, and before memory is used up',
  needs('promtool', isInstalled('promtool')),
  () => {
    const file = join(temporaryFolder(), 'test.yml')
    const rules = {
      rule_files: [pathOf('alerts.yml')],
      evaluation_interval: '5m',
      tests: alertTests.map(ruleTest),
    }
    // JSON is YAML.
    writeFileSync(file, JSON.stringify(rules))

    const result = spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8' })

    expect(result.stderr).toBe('')
  },
)
