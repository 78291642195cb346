import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import {
  type Command,
  freePort,
  launch,
  memorySettings,
  serverProgram,
  temporaryFolder,
  until,
} from '@plant-store/harness'
import { bun } from '@plant-store/harness/npm-program'
import { idOf, importFile, toLine, writeLines } from './plants.ts'

export interface Contestant {
  readonly title: string
  command(): Command | Promise<Command>
  readonly environment: Readonly<Record<string, string>>
}

export const token = 'benchmark-token-benchmark-token-benchmark'

const peer = (file: string) => join(import.meta.dirname, 'peers', file)
const fastify = { command: () => [process.execPath, peer('fastify.ts')] as const }
const bunSqlite = {
  command: async () => [await bun.fetch(), peer('bun-sqlite.js')] as const,
}
const durable = { environment: { SYNCHRONOUS: 'FULL' } }
const notDurable = { environment: { SYNCHRONOUS: 'NORMAL' } }

/** Started like `pnpm start`. */
export const ours: Contestant = {
  title: 'Plant store (durable)',
  command: () => [process.execPath, serverProgram],
  environment: memorySettings,
}
export const contestants: readonly Contestant[] = [
  ours,
  { title: 'Fastify + better-sqlite3 (durable)', ...fastify, ...durable },
  { title: 'Bun + bun:sqlite (durable)', ...bunSqlite, ...durable },
  { title: 'Fastify + better-sqlite3 (not durable)', ...fastify, ...notDurable },
  { title: 'Bun + bun:sqlite (not durable)', ...bunSqlite, ...notDurable },
]

/** Starts a contestant on a file with this many plants, 0 to `plants` - 1. */
export async function start({ title, command, environment }: Contestant, plants = 0) {
  await using stack = new AsyncDisposableStack()
  const folder = stack.use(temporaryFolder()).path
  const file = join(folder, 'plants.db')
  if (plants > 0) {
    const stored = join(folder, 'plants.ndjson')
    writeLines(stored, plants, number => toLine(idOf(number), number, 20))
    await importFile(file, stored)
  }
  const port = await freePort()
  const { PATH } = process.env
  const options = {
    environment: {
      PATH,
      NODE_ENV: 'production',
      HOST: '127.0.0.1',
      PORT: `${port}`,
      DATABASE_URL: pathToFileURL(file).href,
      ACCESS_TOKENS: token,
      ...environment,
    },
    logFile: join(folder, 'log'),
  }
  const server = stack.use(launch(await command(), options))
  const url = `http://127.0.0.1:${port}`
  const isReady = until(
    `${title} to start`,
    async () => (await fetch(`${url}/readyz`)).ok,
  )
  await Promise.race([isReady, server.ended.then(server.assertRunning)])
  const owned = stack.move()
  return {
    title,
    server,
    url,
    file,
    plants,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

export type Running = Awaited<ReturnType<typeof start>>
