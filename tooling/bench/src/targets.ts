import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { countPlants, fill, idOf, type Population } from './population.ts'
import { type ServerProcess, startServer } from './server-process.ts'

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
const onBun = (file: string) => () => [bunProgram(), peer(file)] as const

/** With the environment below, what `pnpm start` sets. */
export const nodeOptionsOfOurs = ['--initial-old-space-size=32'] as const

export const ours: Target = {
  name: 'ours',
  title: 'Plant store (this)',
  promised: 'durable',
  command() {
    const main = fileURLToPath(new URL('../../../apps/api/dist/main.js', import.meta.url))
    if (!existsSync(main)) throw new Error('the plant store is not built: run `pnpm build` first')
    return [process.execPath, ...nodeOptionsOfOurs, main]
  },
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
  {
    name: 'express-full',
    title: 'Express + better-sqlite3, FULL',
    promised: 'durable',
    command: onNode('express-sqlite.ts'),
  },
  { name: 'bun-full', title: 'Bun + bun:sqlite, FULL', promised: 'durable', command: onBun('bun-sqlite.ts') },
  {
    name: 'fastify-normal',
    title: 'Fastify + better-sqlite3, NORMAL',
    promised: 'not durable',
    command: onNode('fastify-sqlite.ts'),
  },
  {
    name: 'express-normal',
    title: 'Express + better-sqlite3, NORMAL',
    promised: 'not durable',
    command: onNode('express-sqlite.ts'),
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
  readonly process: ServerProcess
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

const token = 'benchmark-token-benchmark-token-benchmark'

export async function startTarget(
  target: Target,
  { folder, population, plants }: StartOptions,
): Promise<RunningTarget> {
  const file = join(folder, `${target.name}-${plants}.db`)
  const keeps = target.promised !== 'nothing kept'
  const start = () =>
    startServer({
      command: target.command(),
      logFile: join(folder, `${target.name}-${plants}.log`),
      env: port => ({
        HOST: '127.0.0.1',
        PORT: String(port),
        DATABASE_FILE: file,
        DATABASE_URL: pathToFileURL(file).href,
        SYNCHRONOUS: target.promised === 'durable' ? 'FULL' : 'NORMAL',
        ACCESS_TOKENS: token,
        ...target.env,
      }),
    })

  let server = await start()
  if (keeps && plants > 0) {
    // The first start made the store's tables.
    await server[Symbol.asyncDispose]()
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

// Bun's package would put this program in place in an install step; it is there without one.
function bunProgram(): string {
  const require = createRequire(createRequire(import.meta.url).resolve('bun/package.json'))
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const arch = process.arch === 'arm64' ? 'aarch64' : process.arch
  const program = process.platform === 'win32' ? 'bun.exe' : 'bun'
  for (const libc of ['', '-musl']) {
    try {
      return require.resolve(`@oven/bun-${platform}-${arch}${libc}/bin/${program}`)
    } catch {
      // Not for this machine.
    }
  }
  throw new Error(`there is no Bun for ${platform} ${arch}: choose other targets with --targets`)
}

export function bunVersions(): { readonly bun: string; readonly sqlite: string } {
  const script =
    'const { Database } = require("bun:sqlite");' +
    'const { v } = new Database(":memory:").query("select sqlite_version() v").get();' +
    'console.log(JSON.stringify({ bun: Bun.version, sqlite: v }))'
  return JSON.parse(execFileSync(bunProgram(), ['-e', script], { encoding: 'utf8', timeout: 20_000 }))
}
