import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { hashToken, mintToken, type Scope } from '@plant-store/access'
import type { StoreTokens } from '@plant-store/contract'
import { openStorage } from '@plant-store/persistence'
import { createDatabase } from '@plant-store/postgres'
import { inject } from 'vitest'
import '@plant-store/postgres/vitest'

const main = fileURLToPath(import.meta.resolve('../dist/main.js'))

/** The program itself, as a process of its own on a port that was free. */
export interface Program extends AsyncDisposable {
  readonly url: string
  readonly bodyBytesMax: number
  readonly headerBytesMax: number
  /** Every line of its log so far. */
  readonly log: readonly LogLine[]
  /** Sends a signal, and resolves to how the process ended. */
  end(signal: NodeJS.Signals): Promise<{ code: number | null; signal: NodeJS.Signals | null }>
}

export interface LogLine {
  readonly level: number
  readonly msg: string
  readonly url?: string
  readonly traceId?: string
  readonly status?: number
  readonly reason?: string
}

/**
 * @param environment the configuration; a base URL is not followed but put before the paths
 * @throws Error with what it wrote to standard error, when it ends before it listens
 */
export async function startProgram(environment: Readonly<Record<string, string>>): Promise<Program> {
  const { PATH } = process.env
  const child = spawn(process.execPath, [main], {
    env: { PATH, HOST: '127.0.0.1', PORT: '0', ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const log: LogLine[] = []
  let complaints = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaints += text
  })
  // Unlike `exit`, after everything that it wrote has been read.
  const exited = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>
  const listening = new Promise<string>((resolve, reject) => {
    createInterface(child.stdout).on('line', text => {
      const line = JSON.parse(text) as LogLine
      log.push(line)
      if (line.msg === 'listening' && line.url !== undefined) resolve(line.url)
    })
    exited.then(([code]) => reject(new Error(`the program ended with ${code}: ${complaints}`)), reject)
  })
  const url = await listening

  const end = async (signal: NodeJS.Signals) => {
    if (isRunning(child)) child.kill(signal)
    const [code, ended] = await exited
    return { code, signal: ended }
  }
  return {
    url,
    bodyBytesMax: 1024 * 1024,
    headerBytesMax: 16 * 1024,
    log,
    end,
    [Symbol.asyncDispose]: async () => void (await end('SIGKILL')),
  }
}

const isRunning = ({ exitCode, signalCode }: ChildProcess) => exitCode === null && signalCode === null

/**
 * A database of its own, with one token of each kind in it: on PostgreSQL where the tests have a server of it, and
 * otherwise a file.
 */
export async function prepareDatabase(): Promise<{ url: string; tokens: StoreTokens } & AsyncDisposable> {
  const server = inject('postgresUrl') as string | undefined
  const database = server === undefined ? await createFile() : await createDatabase(server)
  await using storage = await openStorage({ url: database.url })
  const mint = async (name: string, scopes: readonly Scope[], more: { expiresAt?: Date } = {}) => {
    const token = mintToken()
    await storage.tokens.insert({ name, scopes, createdAt: new Date(), ...more }, hashToken(token))
    return token
  }
  const tokens = {
    full: await mint('full', ['plants:read', 'plants:write']),
    readOnly: await mint('read only', ['plants:read']),
    writeOnly: await mint('write only', ['plants:write']),
    expired: await mint('expired', ['plants:read', 'plants:write'], { expiresAt: new Date(Date.now() - 1) }),
    metrics: await mint('metrics', ['metrics:read']),
  }
  return { url: database.url, tokens, [Symbol.asyncDispose]: () => database[Symbol.asyncDispose]() }
}

async function createFile(): Promise<{ url: string } & AsyncDisposable> {
  const folder = await mkdtemp(join(tmpdir(), 'plant-store-'))
  return {
    url: `file:${join(folder, 'plants.db')}`,
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}
