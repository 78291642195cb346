import { type Contestant, creators, startOnFiles } from '../contestants.ts'
import type { Load } from '../load.ts'
import type { Aim, Section } from '../page.ts'
import { picture } from '../picture.ts'
import { median } from '../table.ts'
import { comparison, type Effort, figures, inTurns, type Rounds, timesTheRate } from '../turns.ts'

const loads: readonly Load[] = [
  { title: '64 connections', request: 'create', connections: 64 },
  { title: '256 connections', request: 'create', connections: 256 },
  { title: '1 connection', request: 'create', connections: 1 },
]

/** The target ratio to a contestant's creates, with 64 connections or with 1. */
const ratiosAimedAt: readonly [connections: 64 | 1, title: string, ratio: number][] = [
  [64, 'Fastify + better-sqlite3, FULL', 8],
  [64, 'Bun + bun:sqlite, FULL', 6],
  [64, 'Fastify + better-sqlite3, NORMAL', 2],
  [64, 'Bun + bun:sqlite, NORMAL', 1.3],
  [1, 'Fastify + better-sqlite3, FULL', 0.8],
]

/** Measures durable creates beside common alternatives. */
export async function creates(effort: Effort): Promise<Section> {
  await using started = await startOnFiles(creators.map(each => [each, 0]))
  return createsSection(creators, await inTurns(started.running, loads, effort))
}

/** @param measured by load, by contestant */
export function createsSection(
  contestants: readonly Contestant[],
  measured: readonly (readonly Rounds[])[],
): Section {
  const titles = contestants.map(({ title, promised }) => `${title} (${promised})`)
  const roundsOf = (connections: number, title: string): Rounds => {
    const row = loads.findIndex(load => load.connections === connections)
    return measured[row]?.[contestants.findIndex(each => each.title === title)] ?? []
  }
  const ours = contestants[0]?.title ?? ''
  const aims = ratiosAimedAt.map(([connections, title, atLeast]): Aim => {
    const clients = connections === 1 ? '1 connection' : `${connections} connections`
    const ratio = timesTheRate(roundsOf(connections, ours), roundsOf(connections, title))
    return { what: `Creates, ${clients}, beside ${title}`, unit: 'ratio', measured: ratio, atLeast }
  })
  const processorMicros = median(figures(roundsOf(64, ours), 'processorMicros'))
  const bars = contestants.map(({ title, promised }) => {
    return { title, promised, value: median(figures(roundsOf(64, title), 'perSecond')) }
  })
  return {
    title: 'Creates',
    text: loads
      .map((load, row) => `With ${load.title}:\n\n${comparison(titles, measured[row] ?? [])}`)
      .join('\n\n'),
    aims: [
      {
        what: 'Processor time of a create, 64 connections',
        unit: 'µs',
        measured: processorMicros,
        atMost: 18,
      },
      ...aims,
    ],
    picture: picture('Creates a second, 64 connections', bars),
  }
}
