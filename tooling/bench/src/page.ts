import { formatDecimal, formatRatio, table } from './table.ts'

/** One part of the benchmark's page. */
export interface Section {
  readonly title: string
  readonly text: string
  readonly aims?: readonly Aim[]
  /** An SVG. */
  readonly picture?: string
}

export interface Aim {
  readonly what: string
  readonly unit: 'µs' | 'ratio' | 'creates'
  readonly measured: number
  readonly atLeast?: number
  readonly atMost?: number
}

export interface Conditions {
  readonly machine: string
  readonly rounds: number
}

/** Returns the page, in Markdown. */
export function page(sections: readonly Section[], { machine, rounds }: Conditions): string {
  return [
    '# Benchmark',
    '![Plants created a second, compared with other servers](benchmark.svg)',
    'Each bar shows how many plants a server creates a second for 64 clients on one machine. ' +
      'A **durable** answer is sent once the plant is on disk (`synchronous = FULL`), and one that is **not durable** ' +
      '(`NORMAL`) can be lost in a power cut. ' +
      'The other servers do less: they check no token, write no log, have no index of tags, and take ids up to 2^53 only.',
    '## Aims',
    aimsTable(sections.flatMap(section => section.aims ?? [])),
    ...sections.flatMap(({ title, text }) => [`## ${title}`, text]),
    '## Method',
    `\`pnpm bench\` on ${machine}. The load comes from wrk on the same machine and takes processor time from the servers. ` +
      `The servers run in turns, one second each. A figure is the median of ${rounds} rounds, and a ratio the median of the ` +
      "rounds' ratios. Every answer was a 200, and afterwards every store contained all plants that it had answered for. " +
      'Processor time and memory are those of the whole server process, memory right after the load.',
  ]
    .join('\n\n')
    .concat('\n')
}

function aimsTable(aims: readonly Aim[]): string {
  const ratiosLast = aims.toSorted((a, b) => Number(a.unit === 'ratio') - Number(b.unit === 'ratio'))
  return table(
    ['', 'aim', 'measured', 'met'],
    ratiosLast.map(({ what, unit, measured, atLeast = 0, atMost = Number.POSITIVE_INFINITY }) => {
      const format = unit === 'ratio' ? formatRatio : (value: number) => `${formatDecimal(value)} ${unit}`
      const aim = atLeast > 0 ? `at least ${format(atLeast)}` : `at most ${format(atMost)}`
      return [what, aim, format(measured), measured >= atLeast && measured <= atMost ? 'yes' : 'no']
    }),
  )
}
