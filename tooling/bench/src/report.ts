import type { Measured, Scenario } from './load.ts'
import { median, medianRatio } from './statistics.ts'
import type { Promised } from './targets.ts'

export interface Measurement extends Measured {
  readonly scenario: Scenario
  readonly connections: number
  readonly target: string
  readonly round: number
}

export interface Run {
  readonly machine: string
  /** Of ours, with 64 clients; absent where strace is missing. */
  readonly createsPerFsync?: number | undefined
  readonly seed: number
  readonly rounds: number
  readonly seconds: number
  readonly targets: readonly { readonly name: string; readonly title: string; readonly promised: Promised }[]
  readonly measurements: readonly Measurement[]
}

export interface Cell {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly processorMicros: number
  /** How many times as many as this target we answer; absent for ourselves, and when we were not measured. */
  readonly ratio?: number
}

/** @returns undefined when it was not measured */
export function cell(run: Run, scenario: Scenario, connections: number, target: string): Cell | undefined {
  const rounds = (name: string) =>
    run.measurements
      .filter(each => each.scenario === scenario && each.connections === connections && each.target === name)
      .toSorted((a, b) => a.round - b.round)
  const theirs = rounds(target)
  if (theirs.length === 0) return undefined
  const ours = target === 'ours' ? [] : rounds('ours')
  const rate = (each: Measurement) => each.perSecond
  return {
    perSecond: median(theirs.map(rate)),
    p50Ms: median(theirs.map(each => each.p50Ms)),
    p99Ms: median(theirs.map(each => each.p99Ms)),
    processorMicros: median(theirs.map(each => each.processorMicros)),
    ...(ours.length === theirs.length && { ratio: medianRatio(ours.map(rate), theirs.map(rate)) }),
  }
}

/** What ours takes of the machine; unlike rates, these are much the same on any. */
const processorMicrosAim = 18
const createsPerFsyncAim = 8

/** How many times as many ours answers as others do. */
const aims: readonly [scenario: Scenario, connections: number, target: string, ratio: number][] = [
  ['creates', 64, 'fastify-full', 8],
  ['creates', 64, 'bun-full', 6],
  ['creates', 64, 'fastify-normal', 2],
  ['creates', 64, 'bun-normal', 1.3],
  ['creates', 64, 'fastify', 1.3],
  ['creates', 64, 'node-http', 1],
  ['creates', 1, 'fastify-full', 0.8],
  ['reads', 64, 'fastify-full', 1],
]

const headings: Record<Scenario, string> = {
  creates: 'Creates',
  reads: 'Reads by id',
  lists: 'Lists, 100 plants a page',
  mixed: 'Four reads to a create',
}

const integers = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
export const formatInteger = (value: number) => integers.format(value)
export const formatRatio = (value: number) => `${value.toFixed(value < 10 ? 2 : 1)} ×`
const formatMicros = (value: number) => `${value.toFixed(1)} µs`
export const formatMs = (value: number) => (value < 10 ? value.toFixed(2) : value.toFixed(1))

/** A Markdown table; every column but the first is of numbers. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) =>
    Math.max(3, ...[title, ...rows.map(row => row[column] ?? '')].map(text => text.length)),
  )
  const line = (cells: readonly string[]) =>
    `| ${widths.map((width, column) => pad(cells[column] ?? '', width, column)).join(' | ')} |`
  const rule = widths.map((width, column) => (column === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`))
  return [line(head), `| ${rule.join(' | ')} |`, ...rows.map(line)].join('\n')
}

const pad = (text: string, width: number, column: number) =>
  column === 0 ? text.padEnd(width) : text.padStart(width)

/** The results as a page of Markdown. */
export function report(run: Run, picture?: string): string {
  const scenarios = (Object.keys(headings) as Scenario[]).filter(each =>
    run.measurements.some(m => m.scenario === each),
  )
  return [
    '# Benchmark',
    ...(picture ? [`![Creates a second, ours beside the others](${picture})`] : []),
    `Measured with \`pnpm bench\` on ${run.machine}; load from wrk on the same machine, ` +
      `seed ${run.seed}. Every number is the median of ${run.rounds} measurements of ${run.seconds} s, with everybody measured in turns; ` +
      'a ratio is the median of the rounds’ ratios. Every answer was a 200, and the stores held as many plants afterwards as they had answered for.',
    'A **durable** answer to a create is sent once the plant is on disk (SQLite’s `synchronous=FULL`); one that is ' +
      '**not durable** (`NORMAL`) can be lost with the power. The others check no token, write no log, and take ids up to 2^53 only.',
    ...aimsSection(run),
    ...scenarios.flatMap(scenario => scenarioSections(run, scenario)),
  ]
    .join('\n\n')
    .concat('\n')
}

function aimsSection(run: Run): string[] {
  const title = (name: string) => run.targets.find(target => target.name === name)?.title ?? name
  const rows = aims.flatMap(([scenario, connections, target, aim]) => {
    const ratio = cell(run, scenario, connections, target)?.ratio
    if (ratio === undefined) return []
    const what = `${headings[scenario]}, ${connections} ${connections === 1 ? 'connection' : 'connections'}, beside ${title(target)}`
    return [[what, formatRatio(aim), formatRatio(ratio), ratio >= aim ? 'yes' : 'no']]
  })
  const alone = cell(run, 'creates', 64, 'ours')
  const figures: readonly [string, number | undefined, number, (value: number) => string][] = [
    [
      'Processor time of a create, 64 connections, at most',
      alone?.processorMicros,
      processorMicrosAim,
      formatMicros,
    ],
    ['Creates, 64 connections: p99 beside p50, at most', alone && alone.p99Ms / alone.p50Ms, 3, formatRatio],
  ]
  for (const [what, value, aim, format] of figures) {
    if (value) rows.push([what, format(aim), format(value), value <= aim ? 'yes' : 'no'])
  }
  if (run.createsPerFsync !== undefined) {
    const [aim, value] = [createsPerFsyncAim, run.createsPerFsync]
    rows.push(['Creates an fsync, 64 clients', `${aim}`, value.toFixed(1), value >= aim ? 'yes' : 'no'])
  }
  return rows.length === 0 ? [] : ['## What we aim at', table(['', 'aim', 'measured', 'met'], rows)]
}

function scenarioSections(run: Run, scenario: Scenario): string[] {
  const measured = run.measurements.filter(each => each.scenario === scenario)
  const connections = [...new Set(measured.map(each => each.connections))].toSorted((a, b) => a - b)
  const rows = (text: (cell: Cell) => string) =>
    run.targets
      .filter(target => measured.some(each => each.target === target.name))
      .map(target => [
        scenario === 'creates' || scenario === 'mixed'
          ? `${target.title} (${target.promised})`
          : target.title.replace(/, FULL$/, ''),
        ...connections.map(count => {
          const found = cell(run, scenario, count, target.name)
          return found ? text(found) : ''
        }),
      ])
  const columns = connections.map(count => `${count} conn.`)
  return [
    `## ${headings[scenario]}`,
    'Requests a second, and how many times as many ours answers:',
    table(
      ['', ...columns],
      rows(
        ({ perSecond, ratio }) =>
          formatInteger(perSecond) + (ratio === undefined ? '' : ` (${formatRatio(ratio)})`),
      ),
    ),
    'Latency in ms, p50 / p99:',
    table(
      ['', ...columns],
      rows(({ p50Ms, p99Ms }) => `${formatMs(p50Ms)} / ${formatMs(p99Ms)}`),
    ),
    'Processor time of the server for a request, in µs:',
    table(
      ['', ...columns],
      rows(({ processorMicros }) => processorMicros.toFixed(1)),
    ),
  ]
}
