import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isInstalled } from '@plant-store/harness'
import { needs, temporaryFolder } from '@plant-store/harness/vitest'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { metrics, typeOf } from '../../src/telemetry/metrics.ts'

const pathOf = (file: string) =>
  fileURLToPath(new URL(`../../../../deploy/${file}`, import.meta.url))

// The assertions show whether the files have the forms that are read here.
interface Query {
  readonly expr: string
  readonly alert?: string
}
const { groups } = parse(readFileSync(pathOf('alerts.yml'), 'utf8'))
const alerts: Query[] = groups.flatMap(({ rules }: { rules: Query[] }) => rules)
const { panels } = JSON.parse(readFileSync(pathOf('grafana-dashboard.json'), 'utf8'))
const shown: Query[] = panels.flatMap(({ targets }: { targets: Query[] }) => targets)

/** Returns the names in a query, without functions, labels, times and operators. */
function metricsIn(query: string): string[] {
  const bare = query
    .replaceAll(/\{[^}]*\}|\[[^\]]*\]/g, '')
    .replaceAll(/\b(?:by|without|on|ignoring)\s*\([^)]*\)/g, '')
  return bare.match(/\b[a-z_][\w:]*\b(?!\s*\()/gi) ?? []
}

test('alerts and panels name only metrics that the service has', () => {
  const served = Object.keys(metrics).flatMap(name =>
    typeOf(name) === 'histogram'
      ? [`${name}_bucket`, `${name}_sum`, `${name}_count`]
      : [name],
  )

  expect(alerts.length).toBeGreaterThan(4)
  expect(shown.length).toBeGreaterThan(10)
  for (const { expr } of [...alerts, ...shown]) {
    const names = metricsIn(expr)
    expect(names, expr).not.toEqual([])
    // Prometheus adds `up` for each target.
    expect(['up', ...served], expr).toEqual(expect.arrayContaining(names))
  }
})

const hour = 3600
const mib = 2 ** 20
const backup = 'plant_store_last_backup_timestamp_seconds{instance="a"}'
const memory = 'process_resident_memory_bytes{job="plant-store",instance="a"}'

/** A series has this value in each scrape, every five minutes. */
const alertTests = [
  { alert: 'PlantStoreBackupLate', series: backup, value: 0, fires: true },
  { alert: 'PlantStoreBackupLate', series: backup, value: 0.9 * hour, fires: true },
  { alert: 'PlantStoreBackupLate', series: backup, value: 2 * hour, fires: false },
  { alert: 'PlantStoreBackupLate', series: memory, value: 0, fires: false },
  // It would be killed at its limit of 512 MiB.
  { alert: 'PlantStoreMemory', series: memory, value: 500 * mib, fires: true },
  { alert: 'PlantStoreMemory', series: memory, value: 400 * mib, fires: false },
]

test(
  'alerts fire for an old or missing backup, and before memory is used up',
  needs('promtool', isInstalled('promtool')),
  () => {
    const file = join(temporaryFolder(), 'test.yml')
    const tests = alertTests.map(({ alert, series, value, fires }) => ({
      interval: '5m',
      input_series: [{ series, values: `${value}x330` }],
      promql_expr_test: [
        {
          expr: `count(ALERTS{alertname="${alert}",alertstate="firing",instance="a"})`,
          eval_time: '27h',
          exp_samples: fires ? [{ labels: '{}', value: 1 }] : [],
        },
      ],
    }))
    // JSON is YAML.
    writeFileSync(
      file,
      JSON.stringify({
        rule_files: [pathOf('alerts.yml')],
        evaluation_interval: '5m',
        tests,
      }),
    )

    const result = spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8' })

    expect(result.stderr).toBe('')
  },
)
