import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { serverProgram, temporaryFolder } from '@plant-store/harness'
import { createDatabase, startPostgres } from '@plant-store/harness/postgres'
import { measure } from './load.ts'
import { describeMachine } from './machine.ts'
import { formatInteger, formatRatio, table } from './report.ts'
import { median, medianRatio } from './statistics.ts'
import { type ListeningProcess, startListening, token } from './targets.ts'

export interface SharingOptions {
  readonly rounds: number
  readonly seconds: number
  readonly connections: number
  readonly seed: number
}

const ours = { program: serverProgram, environment: { HTTP_THREADS: '1' } }
const oneInsert = fileURLToPath(new URL('./peers/one-insert.ts', import.meta.url))

const contestants = [
  { title: 'this service, one process', processes: 1, ...ours },
  { title: 'this service, two processes', processes: 2, ...ours },
  { title: 'one INSERT a request', processes: 1, program: oneInsert, environment: {} },
  ...['10', '64'].map(POOL => ({
    title: `one INSERT a request, on a pool of ${POOL}`,
    processes: 1,
    program: oneInsert,
    environment: { POOL },
  })),
]

/**
 * Prints durable creates a second on a PostgreSQL of its own: one process, two, and the same service with one INSERT a
 * request.
 */
export async function sharing({ rounds, seconds, connections, seed }: SharingOptions): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const folder = stack.use(temporaryFolder()).path
  const postgres = stack.use(await startPostgres({ max_connections: '200' }))
  const database = stack.use(await createDatabase(postgres.url))
  const [{ server_version: version } = {}] = await database.query('show server_version')
  console.log(`${describeMachine()}, PostgreSQL ${version} on the same machine; load from wrk`)

  // Each process creates plants with ids that no other has.
  let next = 0
  const load = async (process: ListeningProcess, title: string, share: number, forSeconds: number) => {
    next += 10_000_000
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
    const options = { scenario: 'creates', connections: share, seconds: forSeconds } as const
    return (await measure({ ...running }, options)).perSecond
  }
  const running = []
  for (const { title, processes: count, program, environment } of contestants) {
    const processes: ListeningProcess[] = []
    while (processes.length < count) {
      const all = { DATABASE_URL: database.url, ACCESS_TOKENS: token, LOG_LEVEL: 'warn', ...environment }
      const command = [process.execPath, program] as const
      processes.push(stack.use(await startListening(command, join(folder, 'log'), all)))
    }
    const run = async (forSeconds: number) => {
      const share = connections / count
      const rates = await Promise.all(processes.map(each => load(each, title, share, forSeconds)))
      return rates.reduce((sum, each) => sum + each, 0)
    }
    await run(2)
    running.push({ title, run, perSecond: [] as number[] })
  }
  for (let round = 1; round <= rounds; round++) {
    for (const { title, run, perSecond } of running) {
      await database.query('truncate plants')
      await database.query('checkpoint')
      perSecond.push(await run(seconds))
      console.log(`round ${round}: ${title}: ${formatInteger(perSecond.at(-1) ?? 0)}/s`)
    }
  }
  const first = running[0]?.perSecond ?? []
  console.log(
    table(
      ['', 'creates a second, median', 'this service, one process / it'],
      running.map(({ title, perSecond }) => [
        title,
        formatInteger(median(perSecond)),
        formatRatio(medianRatio(first, perSecond)),
      ]),
    ),
  )
}
