import { expect, test } from 'vitest'
import { metrics, typeOf } from '../../src/telemetry/metrics.ts'

const intro = `# Metrics

Every metric of \`/metrics\`. [Monitoring](operating.md#health-and-metrics) says how to scrape them
and which alerts there are.

<!-- Written by \`vitest run --mode tooling metrics-page -u\` in apps/api. -->

| name | type | meaning |
| --- | --- | --- |
`

test('docs/metrics.md is the table of the metrics', async () => {
  const rows = Object.entries(metrics).map(
    ([name, help]) => `| \`${name}\` | ${typeOf(name)} | ${help} |\n`,
  )
  await expect(intro + rows.join('')).toMatchFileSnapshot('../../../../docs/metrics.md')
})
