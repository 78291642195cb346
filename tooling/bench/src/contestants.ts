import { join } from 'node:path'
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

interface Contestant {
  readonly title: string
  readonly command: Command
  readonly environment: Readonly<Record<string, string>>
}

export const token = 'benchmark-token-benchmark-token-benchmark'

const peers = join(import.meta.dirname, 'peers')
const fastify = [process.execPath, join(peers, 'fastify.ts')] as const
/** Bun must be fetched before. */
const bunSqlite = [bun.path, join(peers, 'bun-sqlite.js')] as const
const full = { SYNCHRONOUS: 'FULL' }
const normal = { SYNCHRONOUS: 'NORMAL' }

export const contestants = [
  // Started like `pnpm start`.
  {
    title: 'Plant store (durable)',
    command: [process.execPath, serverProgram],
    environment: memorySettings,
  },
  { title: 'Fastify + better-sqlite3 (durable)', command: fastify, environment: full },
  { title: 'Bun + bun:sqlite (durable)', command: bunSqlite, environment: full },
  {
    title: 'Fastify + better-sqlite3 (not durable)',
    command: fastify,
    environment: normal,
  },
  { title: 'Bun + bun:sqlite (not durable)', command: bunSqlite, environment: normal },
] as const satisfies readonly Contestant[]

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
  const server = stack.use(
    launch(command, {
      environment: {
        NODE_ENV: 'production',
        PORT: `${port}`,
        DATABASE_URL: `file:${file}`,
        ACCESS_TOKENS: token,
        ...environment,
      },
      logFile: join(folder, 'log'),
    }),
  )
  const url = `http://127.0.0.1:${port}`
  const isReady = until(`${title} to start`, () => fetch(url).then(() => true))
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
