import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { chooseGenerator, type Measured, measure } from '@plant-store/bench/load'
import { describeMachine } from '@plant-store/bench/machine'
import { type ServerProcess, startServer } from '@plant-store/bench/server-process'
import { median, medianRatio } from '@plant-store/bench/statistics'
import { createDatabase, startPostgres } from '@plant-store/postgres'

const usage = `node src/speed.ts [--rounds 5] [--seconds 3] [--connections 64]
Durable creates a second on a PostgreSQL of its own: one process, two, and the same service with one INSERT a request.`

interface Contestant {
  readonly title: string
  readonly processes: number
  readonly program: 'service' | 'one INSERT'
  readonly env: Readonly<Record<string, string>>
}

const service = { program: 'service', env: { HTTP_THREADS: '1' } } as const
const contestants: readonly Contestant[] = [
  { title: 'this service, one process', processes: 1, ...service },
  { title: 'this service, two processes', processes: 2, ...service },
  { title: 'one INSERT a request', processes: 1, program: 'one INSERT', env: {} },
  {
    title: 'one INSERT a request, on a pool of 10',
    processes: 1,
    program: 'one INSERT',
    env: { POOL: '10' },
  },
  {
    title: 'one INSERT a request, on a pool of 64',
    processes: 1,
    program: 'one INSERT',
    env: { POOL: '64' },
  },
]

const programs = {
  service: fileURLToPath(new URL('../../../apps/api/dist/main.js', import.meta.url)),
  'one INSERT': fileURLToPath(new URL('./one-insert.ts', import.meta.url)),
}
const token = 'drill-token-drill-token-drill-token'
const seed = Date.now() % 2 ** 31

const { values } = parseArgs({
  options: {
    help: { type: 'boolean' },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '3' },
    connections: { type: 'string', default: '64' },
  },
})
if (values.help) console.log(usage)
else await main(Number(values.rounds), Number(values.seconds), Number(values.connections))

async function main(rounds: number, seconds: number, connections: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-speed-'))
  try {
    await using stack = new AsyncDisposableStack()
    const postgres = stack.use(await startPostgres({ max_connections: '200' }))
    const database = stack.use(await createDatabase(postgres.url))
    const [{ server_version: version } = {}] = await database.query('show server_version')
    console.log(
      `${describeMachine()}, PostgreSQL ${version} on the same machine; load from ${chooseGenerator().name}`,
    )

    const running = []
    for (const contestant of contestants) {
      const processes = []
      for (let number = 0; number < contestant.processes; number++) {
        processes.push(stack.use(await start(contestant, database.url, join(folder, 'log'))))
      }
      running.push({ contestant, processes, perSecond: [] as number[] })
    }
    // Each process creates plants with ids that no other has.
    let next = 0
    const run = async (processes: readonly ServerProcess[], title: string, forSeconds: number) => {
      const measured = processes.map(process => {
        next += 10_000_000
        return load(process, title, next, connections / processes.length, forSeconds)
      })
      const perSecond = (await Promise.all(measured)).map(each => each.perSecond)
      return perSecond.reduce((sum, each) => sum + each, 0)
    }

    for (const { contestant, processes } of running) await run(processes, contestant.title, 2)
    for (let round = 1; round <= rounds; round++) {
      for (const { contestant, processes, perSecond } of running) {
        await database.query('truncate plants')
        await database.query('checkpoint')
        perSecond.push(await run(processes, contestant.title, seconds))
        console.log(`round ${round}: ${contestant.title}: ${Math.round(perSecond.at(-1) ?? 0)}/s`)
      }
    }

    const ours = running[0]?.perSecond ?? []
    console.log('\n| | creates a second, median | this service, one process / it |\n|---|---|---|')
    for (const { contestant, perSecond } of running) {
      const ratio = medianRatio(ours, perSecond).toFixed(2)
      console.log(`| ${contestant.title} | ${Math.round(median(perSecond))} | ${ratio} |`)
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function start({ program, env }: Contestant, databaseUrl: string, logFile: string): Promise<ServerProcess> {
  return startServer({
    command: [process.execPath, programs[program]],
    logFile,
    env: port => ({
      PORT: String(port),
      DATABASE_URL: databaseUrl,
      ACCESS_TOKENS: token,
      LOG_LEVEL: 'warn',
      ...env,
    }),
  })
}

function load(
  process: ServerProcess,
  title: string,
  next: number,
  connections: number,
  seconds: number,
): Promise<Measured> {
  const running = {
    target: { name: title, title, promised: 'durable', command: () => ['true'] as const },
    process,
    token,
    population: { seed, idBits: 52 },
    readable: 0,
    next,
    stored: () => undefined,
    [Symbol.asyncDispose]: async () => {},
  } as const
  return measure(chooseGenerator(), { ...running }, { scenario: 'creates', connections, seconds })
}
