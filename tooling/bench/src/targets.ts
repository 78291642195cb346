import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { freePort, launch, type Program, serverProgram, until } from '@plant-store/harness'
import { fetchBun } from '@plant-store/harness/bun'
import { countPlants, fill, idOf, type Population } from './population.ts'

/** What an answer to a create promises. */
export type Promised = 'durable' | 'not durable' | 'nothing kept'

export interface Target {
  readonly name: string
  readonly title: string
  readonly promised: Promised
  readonly command: () => readonly [string, ...string[]]
  readonly env?: Readonly<Record<string, string>>
}

const peer = (file: string) => fileURLToPath(new URL(`./peers/${file}`, import.meta.url))
const onNode = (file: string) => () => [process.execPath, peer(file)] as const
const onBun = (file: string) => () => [fetchBun(), peer(file)] as const

export const ours: Target = {
  name: 'ours',
  title: 'Plant store (this)',
  promised: 'durable',
  command() {
    if (!existsSync(serverProgram)) throw new Error('the plant store is not built: run `pnpm build` first')
    return [process.execPath, serverProgram]
  },
  // As `pnpm start` has it.
  env: { MALLOC_ARENA_MAX: '2' },
}

export const targets: readonly Target[] = [
  ours,
  {
    name: 'fastify-full',
    title: 'Fastify + better-sqlite3, FULL',
    promised: 'durable',
    command: onNode('fastify-sqlite.ts'),
  },
  { name: 'bun-full', title: 'Bun + bun:sqlite, FULL', promised: 'durable', command: onBun('bun-sqlite.ts') },
  {
    name: 'fastify-normal',
    title: 'Fastify + better-sqlite3, NORMAL',
    promised: 'not durable',
    command: onNode('fastify-sqlite.ts'),
  },
  {
    name: 'bun-normal',
    title: 'Bun + bun:sqlite, NORMAL',
    promised: 'not durable',
    command: onBun('bun-sqlite.ts'),
  },
  { name: 'fastify', title: 'Fastify, no store', promised: 'nothing kept', command: onNode('fastify.ts') },
  {
    name: 'node-http',
    title: 'node:http, no store',
    promised: 'nothing kept',
    command: onNode('node-http.ts'),
  },
]

export interface RunningTarget extends AsyncDisposable {
  readonly target: Target
  readonly process: ListeningProcess
  readonly token: string
  readonly population: Population
  /** So many plants were there from the start: those numbered below it can be read. */
  readonly readable: number
  /** The number of the next plant to create. */
  next: number
  /** @returns undefined for a target without a store */
  stored(): number | undefined
}

export interface StartOptions {
  /** A folder for its files. */
  readonly folder: string
  readonly population: Population
  /** Plants to put into its store first. */
  readonly plants: number
}

export const token = 'benchmark-token-benchmark-token-benchmark'

/** A server in a process of its own, at a port that it was given. */
export interface ListeningProcess extends Program {
  readonly url: string
}

/** Starts a server, ours or another, and waits until its `GET /readyz` answers 200. */
export async function startListening(
  command: readonly [string, ...string[]],
  logFile: string,
  environment: Readonly<Record<string, string>>,
): Promise<ListeningProcess> {
  const port = await freePort()
  const { PATH } = process.env
  const all = { PATH, NODE_ENV: 'production', HOST: '127.0.0.1', PORT: `${port}`, ...environment }
  const program = launch(command, { environment: all, logFile })
  const url = `http://127.0.0.1:${port}`
  const isReady = async () => (await fetch(`${url}/readyz`)).ok
  await Promise.race([until(`${command.join(' ')}`, isReady), program.ended.then(program.assertRunning)])
  return { ...program, url }
}

export async function startTarget(
  target: Target,
  { folder, population, plants }: StartOptions,
): Promise<RunningTarget> {
  const file = join(folder, `${target.name}-${plants}.db`)
  const keeps = target.promised !== 'nothing kept'
  const start = () =>
    startListening(target.command(), join(folder, `${target.name}-${plants}.log`), {
      DATABASE_FILE: file,
      DATABASE_URL: pathToFileURL(file).href,
      SYNCHRONOUS: target.promised === 'durable' ? 'FULL' : 'NORMAL',
      ACCESS_TOKENS: token,
      ...target.env,
    })

  let server = await start()
  if (keeps && plants > 0) {
    // The first start made the store's tables.
    await server.end()
    fill(file, plants, population)
    server = await start()
  }
  return {
    target,
    process: server,
    token,
    population,
    readable: plants,
    next: plants,
    stored: () => (keeps ? countPlants(file) : undefined),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

/**
 * Creates a plant and, where there is a store, reads it back and lists it.
 *
 * @throws Error when an answer is not exactly what it has to be
 */
export async function tryOut(running: RunningTarget): Promise<void> {
  const { target, process, token, population } = running
  const id = idOf(running.next++, population)
  const expect = async (wanted: string, path: string, init: RequestInit = {}) => {
    const answer = await fetch(process.url + path, {
      ...init,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    })
    const body = await answer.text()
    if (answer.status === 200 && body === wanted) return
    throw new Error(`${target.title} answered ${answer.status} ${body} to ${init.method ?? 'GET'} ${path}`)
  }
  const plant = '"name":"Monstera","tag":"tried"'
  await expect(`{${plant}}`, '/plants', { method: 'POST', body: `{"id":${id},${plant}}` })
  if (target.promised === 'nothing kept') return
  await expect(`{"id":${id},${plant}}`, `/plants/${id}`)
  await expect(`[{"id":${id},${plant}}]`, `/plants?limit=1&after=${id - 1n}`)
}

export function bunVersions(): { readonly bun: string; readonly sqlite: string } {
  const script =
    'const { Database } = require("bun:sqlite");' +
    'const { v } = new Database(":memory:").query("select sqlite_version() v").get();' +
    'console.log(JSON.stringify({ bun: Bun.version, sqlite: v }))'
  return JSON.parse(execFileSync(fetchBun(), ['-e', script], { encoding: 'utf8', timeout: 20_000 }))
}
