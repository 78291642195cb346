import { temporaryFolder } from '@plant-store/harness'
import { createDatabase, startPostgres } from '@plant-store/harness/postgres'
import { type Contestant, onNode, ours, start } from '../contestants.ts'
import type { Section } from '../page.ts'
import { comparison, type Effort, inTurns } from '../turns.ts'

const environment = { ...ours.environment, HTTP_THREADS: '1' }
const peer = { promised: 'durable', command: onNode('fastify-pg.ts') } as const
const contestants: readonly Contestant[] = [
  { ...ours, title: 'Plant store, one process', environment },
  { ...ours, title: 'Plant store, two processes', environment, processes: 2 },
  { ...peer, title: 'Fastify + pg, 10 connections', environment: { POOL: '10' } },
  { ...peer, title: 'Fastify + pg, 64 connections', environment: { POOL: '64' } },
]

/** Measures creates on PostgreSQL, beside one INSERT a request. */
export async function sharing(effort: Effort): Promise<Section> {
  using folder = temporaryFolder()
  await using stack = new AsyncDisposableStack()
  const postgres = stack.use(await startPostgres({ max_connections: '200' }))
  const database = stack.use(await createDatabase(postgres.url))
  const store = {
    url: database.url,
    plants: 0,
    async count() {
      const [{ count } = {}] = await database.query('select count(*) from plants')
      return Number(count)
    },
    flush: () => database.query('truncate plants; checkpoint'),
  }
  const running = []
  for (const contestant of contestants) {
    running.push(stack.use(await start(contestant, store, folder.path)))
  }
  const [{ server_version: version } = {}] = await database.query('show server_version')
  const load = { title: 'PostgreSQL', request: 'create', connections: 64 } as const
  const [measured = []] = await inTurns(running, [load], effort)
  const titles = contestants.map(({ title }) => title)
  return {
    title: 'Creates on PostgreSQL',
    text: [
      `64 connections, PostgreSQL ${version} on the same machine, our processes with \`HTTP_THREADS=1\`. The others send ` +
        'one `INSERT` a request over a pool of connections. All answers are durable. Processor time and memory ' +
        'exclude PostgreSQL.',
      comparison(titles, measured),
    ].join('\n\n'),
  }
}
