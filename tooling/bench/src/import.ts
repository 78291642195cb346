import { closeSync, openSync, readFileSync, rmSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { launch, type Program, startCommand, temporaryFolder } from '@plant-store/harness'
import { createRandom } from '@plant-store/harness/random'
import { peakMebibytes } from './process-figures.ts'
import { formatInteger, formatRatio, table } from './report.ts'
import { median, medianRatio } from './statistics.ts'

interface Run {
  readonly seconds: number
  readonly peak: number
  readonly output: string
}

/**
 * Prints how long the command line takes to import and export plants, beside SQLite's own shell, in turns. What comes
 * out must be what went in, to the byte.
 */
export async function importSpeed(options: { plants: number; rounds: number; seed: number }): Promise<void> {
  const { plants, rounds, seed } = options
  using temporary = temporaryFolder()
  const file = (name: string) => join(temporary.path, name)
  const store = file('store.db')

  const { PATH } = process.env
  const plantStore = (...args: string[]) => timed(startCommand(args, { databaseUrl: `file:${store}` }))
  const shell = (...commands: string[]) =>
    timed(launch(['sqlite3', '-bail', store, ...commands], { environment: { PATH } }))
  /** An empty store, made by the program itself, in the journal mode that it works in. */
  const makeStore = async () => {
    for (const suffix of ['', '-wal', '-shm']) rmSync(store + suffix, { force: true })
    await plantStore('token', 'create', '--name', 'bench')
    await shell('pragma journal_mode = wal')
  }
  const expectPlants = async () => {
    const { output } = await shell('select count(*) from plants')
    if (Number(output) !== plants) throw new Error(`there are ${output} plants, not ${plants}`)
  }
  /** Each takes its turn in a round, with what has to be there before it and hold after it. */
  const turns: readonly [string, () => Promise<Run>][] = [
    [
      'sqlite3 .import (CSV)',
      async () => {
        await makeStore()
        const run = await shell(
          'pragma synchronous = full',
          '.mode csv',
          `.import ${file('rows.csv')} plants`,
        )
        await expectPlants()
        return run
      },
    ],
    [
      'sqlite3 select (CSV)',
      () => {
        rmSync(file('shell.csv'), { force: true })
        const select = 'select id, name, tag from plants order by id'
        return shell('.mode csv', `.once ${file('shell.csv')}`, select)
      },
    ],
    ...([['plants.csv'], ['plants.ndjson', '--strict'], ['plants.ndjson']] as const).map(
      ([name, ...more]): [string, () => Promise<Run>] => [
        `import ${[name, ...more].join(' ')}`,
        async () => {
          await makeStore()
          const run = await plantStore('import', file(name), ...more)
          await expectPlants()
          return run
        },
      ],
    ),
    ...['ndjson', 'csv'].map((format): [string, () => Promise<Run>] => [
      `export plants.${format}`,
      async () => {
        const run = await plantStore('export', file('out'), '--force', '--format', format)
        if (!readFileSync(file('out')).equals(readFileSync(file(`plants.${format}`))))
          throw new Error(`the ${format} that was exported is not what was imported`)
        return run
      },
    ]),
  ]

  const round = async () => {
    const runs = new Map<string, Run>()
    for (const [title, run] of turns) runs.set(title, await run())
    return runs
  }
  writePlants(file, plants, seed)
  const size = Math.round(statSync(file('plants.ndjson')).size / 2 ** 20)
  console.log(`${formatInteger(plants)} plants: ${size} MiB of NDJSON, ${rounds} rounds in turns`)
  const all: Map<string, Run>[] = []
  while (all.length < rounds) all.push(await round())
  const of = (title: string, what: (run: Run) => number) => all.map(runs => what(runs.get(title) as Run))
  const seconds = (title: string) => of(title, run => run.seconds)
  console.log(
    table(
      ['', 's', 'beside sqlite3', 'most MiB'],
      turns.map(([title]) => [
        title,
        median(seconds(title)).toFixed(1),
        formatRatio(
          medianRatio(seconds(title), seconds(turns[/export|select/.test(title) ? 1 : 0]?.[0] ?? '')),
        ),
        formatInteger(Math.max(...of(title, run => run.peak))),
      ]),
    ),
  )
  // A third of the plants needs as much memory as all of them, or it grows with their number.
  writePlants(file, Math.round(plants / 3), seed)
  await makeStore()
  const imported = await plantStore('import', file('plants.ndjson'))
  const exported = await plantStore('export', file('out'), '--force')
  console.log(
    `with a third of the plants: import ${formatInteger(imported.peak)} MiB, export ${formatInteger(exported.peak)} MiB`,
  )
}

async function timed(program: Program): Promise<Run> {
  const startedMs = performance.now()
  let peak = 0
  const watch = setInterval(() => {
    peak = Math.max(peak, peakMebibytes(program.pid))
  }, 50)
  const ending = await program.ended
  clearInterval(watch)
  if (ending !== 0)
    throw new Error(`${program.process.spawnargs.join(' ')} ended with ${ending}: ${program.errors()}`)
  return { seconds: (performance.now() - startedMs) / 1000, peak, output: program.output() }
}

/** The files that both import: with a header, without one, and as NDJSON. */
function writePlants(file: (name: string) => string, count: number, seed: number): void {
  const random = createRandom(seed)
  const [ndjson, csv, headless] = ['plants.ndjson', 'plants.csv', 'rows.csv'].map(name =>
    openSync(file(name), 'w'),
  ) as [number, number, number]
  writeSync(csv, 'id,name,tag\n')
  for (let from = 0; from < count; from += 10_000) {
    let lines = ''
    let fields = ''
    for (let n = from; n < Math.min(from + 10_000, count); n++) {
      const name = `Plant no ${n} ${random.below(2 ** 31).toString(36)}`
      const tag = `kind ${random.below(500)}`
      lines += `${JSON.stringify({ id: n * 7, name, tag })}\n`
      fields += `${n * 7},${name},${tag}\n`
    }
    writeSync(ndjson, lines)
    writeSync(csv, fields)
    writeSync(headless, fields)
  }
  for (const descriptor of [ndjson, csv, headless]) closeSync(descriptor)
}
