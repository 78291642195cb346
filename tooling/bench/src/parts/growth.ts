import { ours, startOnFiles } from '../contestants.ts'
import type { Load } from '../load.ts'
import type { Section } from '../page.ts'
import { formatInteger, formatRatio, median, table } from '../table.ts'
import { type Effort, figures, inTurns, timesTheRate } from '../turns.ts'

const fewPlants = 1_000
const loads: readonly Load[] = [
  { title: 'create, 64 connections', request: 'create', connections: 64 },
  { title: 'read by id, 64 connections', request: '/plants/%s', connections: 64 },
  { title: 'first page of 100', request: '/plants?limit=100', connections: 1 },
  { title: 'page from anywhere', request: '/plants?limit=100&after=%s', connections: 1 },
  { title: 'page of a tag of 50 plants', request: '/plants?limit=100&tag=rare', connections: 1 },
  { title: 'page of a tag of every 20th plant', request: '/plants?limit=100&tag=tag-1', connections: 1 },
]

/** Measures a large store beside a small one. */
export async function growth(effort: Effort): Promise<Section> {
  await using started = await startOnFiles([fewPlants, effort.manyPlants].map(plants => [ours, plants]))
  const measured = await inTurns(started.running, loads, effort)
  const rows = measured.map(([few = [], many = []], row) => [
    loads[row]?.title ?? '',
    formatInteger(median(figures(few, 'perSecond'))),
    formatInteger(median(figures(many, 'perSecond'))),
    formatRatio(timesTheRate(many, few)),
  ])
  const head = [
    '',
    ...[fewPlants, effort.manyPlants].map(count => `${formatInteger(count)} plants`),
    'many / few',
  ]
  return { title: 'Many plants', text: `Requests a second:\n\n${table(head, rows)}` }
}
