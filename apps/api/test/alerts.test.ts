import { readFileSync } from 'node:fs'
import { startServer } from '@plant-store/harness'
import { beforeAll, describe, expect, test } from 'vitest'

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

const names = new Set<string>()

beforeAll(async () => {
  await using server = await startServer({
    environment: { ACCESS_TOKENS: 'token' },
  })
  const headers = { authorization: 'Bearer token', 'content-type': 'application/json' }
  await fetch(`${server.url}/plants`, { method: 'POST', headers, body: '{"id":1,"name":"a"}' })
  const text = await (await fetch(`${server.url}/metrics`, { headers })).text()
  for (const [, name = '', type] of text.matchAll(/^# TYPE (\S+) (\w+)$/gm)) {
    const suffixes = type === 'histogram' ? ['_bucket', '_sum', '_count'] : ['']
    for (const suffix of suffixes) names.add(name + suffix)
  }
  // Made by Prometheus for each target.
  names.add('up')
})

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
