import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { freePort, launch, type Program, serverProgram, temporaryFolder, until } from '@plant-store/harness'
import { fetchBun } from '@plant-store/harness/bun'
import { countPlants, fill, idOf } from './plants.ts'

/** What a successful create guarantees. */
export type Promised = 'durable' | 'not durable' | 'nothing kept'

export interface Contestant {
  readonly title: string
  readonly promised: Promised
  command(): readonly [string, ...string[]]
  readonly environment?: Readonly<Record<string, string>>
  /** Processes on the store, by default 1. */
  readonly processes?: number
}

/** The store of a contestant. */
export interface Store {
  readonly url: string
  /** Plants 0 to `plants` - 1 exist from the start. */
  readonly plants: number
  count(): number | Promise<number>
  /** Flushes what one contestant left, so that the next does not pay for it. */
  flush(): unknown
}

export interface Running extends AsyncDisposable {
  readonly contestant: Contestant
  readonly servers: readonly Server[]
  readonly store: Store
}

export interface Server extends Program {
  readonly url: string
}

export const token = 'benchmark-token-benchmark-token-benchmark'

const peer = (file: string) => fileURLToPath(new URL(`./peers/${file}`, import.meta.url))
export const onNode = (file: string) => () => [process.execPath, peer(file)] as const
const onBun = (file: string) => () => [fetchBun(), peer(file)] as const

/** Started like `pnpm start`. */
export const ours: Contestant = {
  title: 'Plant store (this)',
  promised: 'durable',
  command: () => [process.execPath, serverProgram],
  environment: { MALLOC_ARENA_MAX: '2' },
}

const fastify = { command: onNode('fastify.ts') }
const bun = { command: onBun('bun-sqlite.js') }
const durable = { promised: 'durable', environment: { SYNCHRONOUS: 'FULL' } } as const
const notDurable = { promised: 'not durable', environment: { SYNCHRONOUS: 'NORMAL' } } as const

export const readers: readonly Contestant[] = [
  ours,
  { title: 'Fastify + better-sqlite3, FULL', ...fastify, ...durable },
  { title: 'Bun + bun:sqlite, FULL', ...bun, ...durable },
]

export const creators: readonly Contestant[] = [
  ...readers,
  { title: 'Fastify + better-sqlite3, NORMAL', ...fastify, ...notDurable },
  { title: 'Bun + bun:sqlite, NORMAL', ...bun, ...notDurable },
  { title: 'Fastify, no store', promised: 'nothing kept', ...fastify },
  { title: 'node:http, no store', promised: 'nothing kept', command: onNode('node-http.ts') },
]

export const bunVersion = () => execFileSync(fetchBun(), ['--version'], { encoding: 'utf8' }).trim()

let files = 0

/** Returns a new file for a store, filled with plants if so asked. */
export async function storeInFile(folder: string, plants = 0): Promise<Store> {
  const file = join(folder, `${files++}.db`)
  if (plants > 0) await fill(file, plants)
  return {
    url: pathToFileURL(file).href,
    plants,
    count: () => countPlants(file),
    flush: () => execFileSync('sync', { timeout: 60_000 }),
  }
}

/** Starts contestants, each on a file with this many plants, and tries them out. */
export async function startOnFiles(contestants: readonly (readonly [Contestant, plants: number])[]) {
  await using stack = new AsyncDisposableStack()
  const folder = stack.use(temporaryFolder()).path
  const running: Running[] = []
  for (const [contestant, plants] of contestants) {
    const one = stack.use(await start(contestant, await storeInFile(folder, plants), folder))
    await tryOut(one)
    running.push(one)
  }
  const owned = stack.move()
  return { running, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

/** Starts a contestant on a store and waits until it answers. Its logs go to the folder. */
export async function start(contestant: Contestant, store: Store, folder: string): Promise<Running> {
  await using stack = new AsyncDisposableStack()
  const servers: Server[] = []
  while (servers.length < (contestant.processes ?? 1)) {
    servers.push(stack.use(await startServer(contestant, store, join(folder, 'log'))))
  }
  const owned = stack.move()
  return { contestant, servers, store, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

async function startServer(contestant: Contestant, store: Store, logFile: string): Promise<Server> {
  const { PATH } = process.env
  const command = contestant.command()
  const program = command.at(-1) as string
  if (!existsSync(program)) throw new Error(`${program} is missing: run \`pnpm build\` first`)
  const port = await freePort()
  const environment = {
    ...{ PATH, NODE_ENV: 'production', HOST: '127.0.0.1', PORT: `${port}` },
    ...{ DATABASE_URL: store.url, ACCESS_TOKENS: token, ...contestant.environment },
  }
  const server = { ...launch(command, { environment, logFile }), url: `http://127.0.0.1:${port}` }
  const isReady = async () => (await fetch(`${server.url}/readyz`)).ok
  await Promise.race([
    until(`${contestant.title} to start`, isReady),
    server.ended.then(server.assertRunning),
  ])
  return server
}

/**
 * Creates a plant, and with a store reads it back and lists it.
 *
 * @throws Error if an answer is not exactly right
 */
export async function tryOut({ contestant: { title, promised }, servers: [server] }: Running): Promise<void> {
  const expect = async (wanted: string, path: string, body?: string) => {
    const answer = await fetch(`${server?.url}${path}`, {
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body !== undefined && { method: 'POST', body }),
    })
    const text = await answer.text()
    if (answer.status !== 200 || text !== wanted)
      throw new Error(`${title}: ${path}: ${answer.status} ${text}`)
  }
  const id = idOf(2 ** 31)
  const plant = '"name":"Monstera","tag":"tried"'
  await expect(`{${plant}}`, '/plants', `{"id":${id},${plant}}`)
  if (promised === 'nothing kept') return
  await expect(`{"id":${id},${plant}}`, `/plants/${id}`)
  await expect(`[{"id":${id},${plant}}]`, `/plants?limit=1&after=${id - 1n}`)
}
