import { join } from 'node:path'
import {
  memorySettings,
  type ServerOptions,
  startServer,
  temporaryFolder,
} from '@plant-store/harness'
import { createClient, createRecorder } from '@plant-store/http/testing'
import { operationsOver } from './operations.ts'
import type { Finding } from './part.ts'

/** The token of every server here. */
export const token = 'token-of-these-proofs'

/** Our server, and a client of it. */
export type TestedProgram = Awaited<ReturnType<typeof startProgram>>

/**
 * Starts our server for a load of many wrong tokens, by default on an SQLite file of its
 * own.
 */
export async function startProgram({
  databaseUrl,
  environment,
  ...options
}: ServerOptions = {}) {
  await using starting = new AsyncDisposableStack()
  const folder = starting.use(temporaryFolder()).path
  const server = starting.use(
    await startServer({
      ...options,
      databaseUrl: databaseUrl ?? `file:${join(folder, 'plants.db')}`,
      // These are the settings of `pnpm start`.
      environment: {
        ...memorySettings,
        HTTP_THREADS: '2',
        ACCESS_TOKENS: token,
        ...environment,
      },
      keepsOnlyWarnings: true,
    }),
  )
  const connected = await connect(server.url)
  starting.defer(() => connected.client.close())
  const resources = starting.move()
  return {
    ...server,
    ...connected,
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  }
}

/** Fails if the program reported a defect or has ended. */
export async function withProgram(
  options: ServerOptions,
  run: (program: TestedProgram) => Promise<Finding>,
): Promise<Finding> {
  await using program = await startProgram(options)
  const finding = await run(program)
  const defects = program.warnings().filter(({ level }) => level !== 'warn')
  const logged = defects.map(line => `it logged ${JSON.stringify(line)}`)
  const failures = [...finding.failures, ...logged]
  if (!program.isRunning()) {
    failures.push(`the program ended, and printed:\n${program.errors()}`)
  }
  return { ...finding, failures }
}

/** Returns a client that compares every answer with the server's description. */
export async function connect(url: string) {
  const description = await (await fetch(`${url}/openapi.json`)).text()
  const tokens = {
    full: token,
    readOnly: token,
    writeOnly: token,
    expired: 'nobody-has-this',
    metrics: token,
  }
  const client = createClient({ url, tokens }, createRecorder(description))
  return { description, client, operations: operationsOver(client) }
}
