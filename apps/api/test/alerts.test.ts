import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isInstalled } from '@plant-store/harness'
import { needs, temporaryFolder } from '@plant-store/harness/vitest'
import { expect, test } from 'vitest'
import { metrics } from '../src/telemetry/metrics.ts'

const pathOf = (file: string) =>
  fileURLToPath(new URL(`../../../deploy/${file}`, import.meta.url))
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

/**
 * A test of Prometheus: whether the alert fires after 27 hours with this time of the last
 * backup, in hours after the start.
 */
function alertTest(lastBackup: number | undefined, fires: boolean) {
  const series = 'plant_store_last_backup_timestamp_seconds{instance="a"}'
  return {
    interval: '5m',
    input_series:
      lastBackup === undefined ? [] : [{ series, values: `${lastBackup * 3600}x330` }],
    promql_expr_test: [
      {
        expr: 'count(ALERTS{alertname="PlantStoreBackupLate",alertstate="firing",instance="a"})',
        eval_time: '27h',
        exp_samples: fires ? [{ labels: '{}', value: 1 }] : [],
      },
    ],
  }
}

test(
  'an old or missing backup fires, a recent one and PostgreSQL do not',
  needs('promtool', isInstalled('promtool')),
  () => {
    const file = join(temporaryFolder(), 'test.yml')
    const tests = [
      alertTest(0, true),
      alertTest(0.9, true),
      alertTest(2, false),
      alertTest(undefined, false),
    ]
    const rules = {
      rule_files: [pathOf('alerts.yml')],
      evaluation_interval: '5m',
      tests,
    }
    // JSON is YAML.
    writeFileSync(file, JSON.stringify(rules))

    const result = spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8' })

    expect(result.stderr).toBe('')
  },
)
