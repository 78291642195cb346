import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { type Client, createClient, createRecorder } from '@plant-store/contract'

const main = fileURLToPath(import.meta.resolve('@plant-store/api/dist/main.js'))

/** What a start may take on a machine that is busy. */
const startTimeoutMs = 60_000

/** The token that every program here is given. */
export const token = 'prove-token'

/** The program itself, as a process of its own. Disposing of it kills it. */
export interface Program extends AsyncDisposable {
  readonly pid: number
  readonly url: string
  /** Lines of its log that are warnings or worse, the last {@link keptLinesMax}. */
  readonly complaints: readonly string[]
  /** The end of what it wrote to standard error. */
  printed(): string
  isRunning(): boolean
  /** Sends a signal, and resolves to how the process ended. */
  end(signal: NodeJS.Signals): Promise<{ code: number | null; signal: NodeJS.Signals | null }>
}

const keptLinesMax = 1_000

export interface ProgramOptions {
  readonly databaseUrl: string
  readonly environment?: Readonly<Record<string, string>>
  /** A module that is loaded before the program, in each of its threads. */
  readonly preload?: string | undefined
  /** Ends a start that is under way. */
  readonly signal?: AbortSignal
}

/** The program ended before it listened. */
export class StartError extends Error {
  readonly code: number | null
  readonly printed: string

  constructor(code: number | null, printed: string) {
    super(`the program ended with ${code} before it listened, and printed:\n${printed}`)
    this.code = code
    this.printed = printed
  }
}

/** @throws StartError */
export async function startProgram({
  databaseUrl,
  environment = {},
  preload,
  signal,
}: ProgramOptions): Promise<Program> {
  const { PATH } = process.env
  const child = spawn(process.execPath, [...(preload === undefined ? [] : ['--import', preload]), main], {
    env: {
      PATH,
      HOST: '127.0.0.1',
      PORT: '0',
      DATABASE_URL: databaseUrl,
      ACCESS_TOKENS: token,
      // As `pnpm start` does.
      MALLOC_ARENA_MAX: '2',
      // Many a part tries one wrong token after the other.
      WRONG_TOKENS_LIMIT: '1000000',
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const killNow = () => child.kill('SIGKILL')
  process.once('exit', killNow)
  signal?.addEventListener('abort', killNow, { once: true })
  let printed = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    printed = (printed + text).slice(-10_000)
  })
  const complaints: string[] = []
  const exited = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>
  const ended = exited.then(([code, endSignal]) => {
    process.off('exit', killNow)
    signal?.removeEventListener('abort', killNow)
    return { code, signal: endSignal }
  })
  const listening = new Promise<string>((resolve, reject) => {
    createInterface(child.stdout).on('line', line => {
      // Most lines tell of an answer, and there are many.
      if (line.startsWith('{"level":30,') && !line.includes('"msg":"listening"')) return
      const entry = readLine(line)
      if (entry?.msg === 'listening' && entry.url !== undefined) resolve(entry.url)
      else if (complaints.push(line) > keptLinesMax) complaints.shift()
    })
    ended.then(({ code }) => reject(new StartError(code, printed)), reject)
  })
  const timer = setTimeout(killNow, startTimeoutMs)
  const url = await listening.finally(() => clearTimeout(timer))
  const end = async (endSignal: NodeJS.Signals) => {
    if (isRunning(child)) child.kill(endSignal)
    return await ended
  }
  return {
    pid: child.pid as number,
    url,
    complaints,
    printed: () => printed,
    isRunning: () => isRunning(child),
    end,
    [Symbol.asyncDispose]: async () => void (await end('SIGKILL')),
  }
}

const isRunning = ({ exitCode, signalCode }: ChildProcess) => exitCode === null && signalCode === null

function readLine(line: string): { msg?: string; url?: string } | undefined {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

/** A client that compares every answer with the description that the program serves. */
export async function connectClient({ url }: Program, description?: string): Promise<Client> {
  const text = description ?? (await (await fetch(`${url}/openapi.json`)).text())
  return createClient(
    {
      url,
      tokens: { full: token, readOnly: token, writeOnly: token, expired: 'nobody-has-this', metrics: token },
      bodyBytesMax: 1024 * 1024,
      headerBytesMax: 16 * 1024,
    },
    createRecorder(text),
  )
}
