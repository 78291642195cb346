import { mkdirSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { chart } from './chart.ts'
import { compare } from './compare.ts'
import { fsyncs, NoStraceError } from './fsyncs.ts'
import { growth } from './growth.ts'
import { importSpeed } from './import.ts'
import { hasWrk, type Scenario } from './load.ts'
import { memory } from './memory.ts'
import { report } from './report.ts'
import { sharing } from './sharing.ts'
import { ours, type Target, targets } from './targets.ts'

const usage = `pnpm bench [options]          the plant store beside its peers
  --quick                     one round of creates and reads over 64 connections, in under a minute
  --targets a,b               of ${targets.map(({ name }) => name).join(', ')} (default: all)
  --scenario a,b              of creates, reads, lists, mixed (default: all)
  --connections a,b           default: 1,16,64,256
  --rounds n                  default: 5
  --seconds n                 a measurement, default: 1
  --warm-up n                 seconds for each server first, default: 8
  --plants n                  in the stores that are read from, default: 100000
  --out file.md               results, with a picture beside them (.svg)
                              default: docs/benchmark.md for a whole run, tooling/bench/results/ for part of one
pnpm bench growth             a big store beside a new one
  --plants n                  default: 10000000
  --rounds n, --seconds n     default: 5, 2
pnpm bench fsyncs             counts with strace what creates wait for; 1: a bound is broken, 2: no strace
pnpm bench memory             resident memory over many creates; 1: the bound is broken
  --creates n                 default: 1000000
  --connections n             default: 64
pnpm bench sharing            creates on PostgreSQL, beside one INSERT a request
  --rounds n, --seconds n, --connections n   default: 5, 3, 64
pnpm bench import             the command line's import and export, beside sqlite3's
  --plants n, --rounds n      default: 1000000, 3
fsyncs and memory             --targets one of the above, default: ours
all                           --seed n, for other ids; default: from the clock, and printed`

const scenarios: readonly Scenario[] = ['creates', 'reads', 'lists', 'mixed']
const folder = fileURLToPath(new URL('..', import.meta.url))

const stopping = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    stopping.abort(new Error(`stopped by ${signal}`))
  })
}

try {
  process.exitCode = await main()
} catch (error) {
  console.error(`bench: ${(error as Error).message}`)
  process.exitCode = error instanceof NoStraceError ? 2 : 1
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      help: { type: 'boolean' },
      quick: { type: 'boolean' },
      targets: { type: 'string' },
      scenario: { type: 'string' },
      connections: { type: 'string' },
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      'warm-up': { type: 'string' },
      plants: { type: 'string' },
      creates: { type: 'string' },
      seed: { type: 'string' },
      out: { type: 'string' },
    },
  })
  const number = (
    name: 'rounds' | 'seconds' | 'warm-up' | 'plants' | 'creates' | 'seed',
    fallback: number,
    min = 1,
  ) => integer(`--${name}`, values[name] ?? String(fallback), min)
  const seed = number('seed', Date.now() % 2 ** 31, 0)
  const connections = (fallback: string) =>
    (values.connections ?? fallback).split(',').map(text => integer('--connections', text, 1))

  if (values.help) {
    console.log(usage)
    return 0
  }
  if (!hasWrk) throw new Error('wrk makes the load, and it is not installed (apt-get install wrk)')
  switch (positionals[0]) {
    case undefined: {
      const run = await compare(
        {
          targets: chosenTargets(values.targets),
          scenarios: list(
            '--scenario',
            values.scenario ?? (values.quick ? 'creates,reads' : scenarios.join()),
            scenarios,
          ),
          connections: connections(values.quick ? '64' : '1,16,64,256'),
          rounds: number('rounds', values.quick ? 1 : 5),
          seconds: number('seconds', 1),
          // V8 goes on compiling for so long; what it does then is not what a server does that has been up for a minute.
          warmUpSeconds: number('warm-up', values.quick ? 1 : 8, 0),
          plants: number('plants', 100_000),
          seed,
        },
        stopping.signal,
      )
      // Only a whole run may replace the published results without being asked to.
      const isWhole =
        !values.quick && !values.targets && !values.scenario && !values.connections && !values.rounds
      const out = resolve(
        values.out ??
          (isWhole ? join(folder, '../../docs/benchmark.md') : join(folder, 'results/benchmark.md')),
      )
      const picture = chart(run)
      const svg = out.replace(/(\.md)?$/, '.svg')
      const page = report(run, picture && basename(svg))
      write(join(folder, 'results/benchmark.json'), `${JSON.stringify(run, null, 1)}\n`)
      write(out, page)
      if (picture) write(svg, picture)
      console.log(`\n${page}\nwritten to ${out}`)
      return 0
    }
    case 'growth':
      await growth(
        {
          plants: number('plants', 10_000_000, 1_000),
          rounds: number('rounds', 5),
          seconds: number('seconds', 2),
          seed,
        },
        stopping.signal,
      )
      return 0
    case 'fsyncs':
      return (await fsyncs(oneTarget(values.targets), seed)) ? 0 : 1
    case 'memory':
      return (await memory(
        oneTarget(values.targets),
        { creates: number('creates', 1_000_000), connections: connections('64')[0] as number, seed },
        stopping.signal,
      ))
        ? 0
        : 1
    case 'sharing':
      await sharing({
        rounds: number('rounds', 5),
        seconds: number('seconds', 3),
        connections: connections('64')[0] as number,
        seed,
      })
      return 0
    case 'import':
      await importSpeed({ plants: number('plants', 1_000_000), rounds: number('rounds', 3), seed })
      return 0
    default:
      throw new Error(`there is no ${positionals[0]}; this is how it goes:\n${usage}`)
  }
}

function chosenTargets(text: string | undefined): Target[] {
  const names =
    text === undefined
      ? undefined
      : list(
          '--targets',
          text,
          targets.map(({ name }) => name),
        )
  return targets.filter(({ name }) => names?.includes(name) ?? true)
}

function oneTarget(text: string | undefined): Target {
  return (text === undefined ? ours : chosenTargets(text)[0]) as Target
}

function list<Word extends string>(option: string, text: string, words: readonly Word[]): Word[] {
  return text.split(',').map(part => {
    const word = words.find(each => each === part)
    if (word === undefined)
      throw new Error(`${option} takes some of ${words.join(', ')}, separated by commas`)
    return word
  })
}

function integer(option: string, text: string, min: number): number {
  const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN
  if (value >= min && value < 2 ** 31) return value
  throw new Error(`${option} takes a whole number from ${min}`)
}

function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}
