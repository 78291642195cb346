import { readers, startOnFiles } from '../contestants.ts'
import type { Load } from '../load.ts'
import type { Section } from '../page.ts'
import { formatInteger } from '../table.ts'
import { comparison, type Effort, inTurns, timesTheRate } from '../turns.ts'

const plants = 100_000
const loads: readonly Load[] = [
  { title: 'reads by id', request: '/plants/%s', connections: 64 },
  { title: 'pages of 100', request: '/plants?limit=100&after=%s', connections: 64 },
]

/** Measures reads and lists beside common alternatives. */
export async function reads(effort: Effort): Promise<Section> {
  await using started = await startOnFiles(readers.map(each => [each, plants]))
  const [byId = [], pages = []] = await inTurns(started.running, loads, effort)
  const [ours = [], fastify = []] = byId
  const titles = readers.map(({ title }) => title.replace(', FULL', ''))
  return {
    title: 'Reads and lists',
    text: [
      `By id, from ${formatInteger(plants)} plants, with 64 connections:`,
      comparison(titles, byId),
      'Pages of 100 plants from anywhere in the list, with 64 connections:',
      comparison(titles, pages),
    ].join('\n\n'),
    aims: [
      {
        what: `Reads by id, 64 connections, beside ${titles[1]}`,
        unit: 'ratio',
        measured: timesTheRate(ours, fastify),
        atLeast: 1,
      },
    ],
  }
}
