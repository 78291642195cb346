import { formatDecimal, formatRatio, table } from './table.ts'

/** What one part of the benchmark adds to the page. */
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
    '![Creates a second, beside others](benchmark.svg)',
    'The picture shows how many plants each server creates a second for 64 clients on one machine. ' +
      'A **durable** answer is sent once the plant is on disk (SQLite’s `synchronous = FULL`), one that is ' +
      '**not durable** (`NORMAL`) can be lost in a power cut, and the servers without a store keep nothing. ' +
      'The other servers check no token, write no log, have no index of tags and take ids up to 2^53 only.',
    '## Aims',
    aimsTable(sections.flatMap(section => section.aims ?? [])),
    ...sections.flatMap(({ title, text }) => [`## ${title}`, text]),
    '## Method',
    `\`pnpm bench\` on ${machine}. wrk makes the load on the same machine, so it takes processor time from the servers. ` +
      `Everyone is measured in turns for one second. A figure is the median of ${rounds}, a ratio the median of the ` +
      'rounds’ ratios. Every answer was a 200, and afterwards every store was found to hold the plants that it had ' +
      'answered for. Processor time and memory are those of the whole server process, the latter right after the load.',
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
