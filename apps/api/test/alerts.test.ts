import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { needs, temporaryFolder } from '@plant-store/harness/vitest'
import { expect, test } from 'vitest'
import { metrics } from '../src/telemetry/metrics.ts'

const read = (file: string) =>
  readFileSync(new URL(`../../../deploy/${file}`, import.meta.url), 'utf8')

interface Dashboard {
  readonly panels: readonly {
    readonly title: string
    readonly targets: readonly { readonly expr: string }[]
  }[]
}

/** Each `expr` of the file, on one line or folded over several. */
const alerts = [
  ...read('alerts.yml').matchAll(/- alert: (\w+)\n +expr: (?:>-\n)?(.+(?:\n {10}.+)*)/g),
].map(([, name = '', expr = '']) => [name, expr] as const)
const panels = (JSON.parse(read('grafana-dashboard.json')) as Dashboard).panels.flatMap(
  ({ title, targets }) => targets.map(({ expr }) => [title, expr] as const),
)

/** Returns the names in a query, without functions, labels, times and operators. */
function metricsIn(query: string): string[] {
  const bare = query
    .replaceAll(/\{[^}]*\}|\[[^\]]*\]/g, '')
    .replaceAll(/\b(?:by|without|on|ignoring)\s*\([^)]*\)/g, '')
  return bare.match(/\b[a-z_][\w:]*\b(?!\s*\()/gi) ?? []
}

const served = Object.entries(metrics).flatMap(([name, [type]]) =>
  (type === 'histogram' ? ['_bucket', '_sum', '_count'] : ['']).map(
    suffix => name + suffix,
  ),
)
// Prometheus adds `up` for each target.
const names = new Set(['up', ...served])

test('alerts and panels name only metrics that the service has', () => {
  expect(alerts).toHaveLength(read('alerts.yml').match(/- alert:/g)?.length as number)
  expect(alerts.length).toBeGreaterThan(4)
  expect(panels.length).toBeGreaterThan(10)
  for (const [name, query] of [...alerts, ...panels]) {
    const found = metricsIn(query)
    expect(found.length, name).toBeGreaterThan(0)
    expect(
      found.filter(each => !names.has(each)),
      name,
    ).toEqual([])
  }
})

const hasPromtool = spawnSync('promtool', ['--version']).status === 0

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
  needs('promtool', hasPromtool),
  () => {
    const file = join(temporaryFolder(), 'test.yml')
    const rules = fileURLToPath(new URL('../../../deploy/alerts.yml', import.meta.url))
    const tests = [
      alertTest(0, true),
      alertTest(0.9, true),
      alertTest(2, false),
      alertTest(undefined, false),
    ]
    // JSON is YAML.
    writeFileSync(
      file,
      JSON.stringify({ rule_files: [rules], evaluation_interval: '5m', tests }),
    )
    expect(
      spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8' }).stderr,
    ).toBe('')
  },
)
