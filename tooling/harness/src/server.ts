import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { launch } from './program.ts'
import { temporaryFolder } from './temporary-folder.ts'

/** The file that starts our server. */
export const serverProgram = fileURLToPath(
  new URL('../../../apps/api/dist/main.js', import.meta.url),
)

/** The settings of glibc in `pnpm start`, the release folder and the image. */
export const memorySettings = { MALLOC_ARENA_MAX: '2', MALLOC_TRIM_THRESHOLD_: '131072' }

/** A program and its arguments. */
export type Command = readonly [string, ...string[]]

/** How long a start may take on a busy machine. */
const startTimeoutMs = 60_000

export interface ServerOptions {
  readonly databaseUrl?: string | undefined
  readonly environment?: Readonly<Record<string, string>>
  /** The command to run; {@link serverProgram} unless given. */
  readonly command?: Command
  /**
   * Where it is started: its relative paths begin there. Unless it or the database is
   * given, a temporary one.
   */
  readonly folder?: string
  /** A module that is loaded before the program, in each of its threads. */
  readonly preload?: string | undefined
  /** Whether it has a terminal, on which its log and its errors are one output. */
  readonly onTerminal?: boolean
  /** Keeps only warnings and worse of its log: under load it writes millions of lines. */
  readonly keepsOnlyWarnings?: boolean
}

export interface LogLine {
  readonly level: string
  /** The number of milliseconds since 1970. */
  readonly time: number
  readonly msg: string
  readonly url?: string
  readonly reqId?: string
  readonly traceId?: string
  readonly status?: number
  readonly plantId?: string
  readonly reason?: string
}

/** Our server, perhaps not listening yet. */
export type LaunchedServer = ReturnType<typeof launchServer>
export type Server = Awaited<ReturnType<typeof startServer>>

const isWarning = ({ level }: LogLine) => ['warn', 'error', 'fatal'].includes(level)

/** Starts our server on a free port, and does not wait for it. */
export function launchServer(options: ServerOptions = {}) {
  const { databaseUrl, environment, folder, preload, onTerminal, keepsOnlyWarnings } =
    options
  const [file, ...args] = options.command ?? [process.execPath, serverProgram]
  const imports = preload === undefined ? [] : ['--import', preload]
  const command: Command = [file, ...imports, ...args]
  const { PATH } = process.env
  const temporary =
    folder === undefined && databaseUrl === undefined ? temporaryFolder() : undefined
  const program = launch(onTerminal ? onTerminalOf(command) : command, {
    folder: folder ?? temporary?.path,
    environment: {
      PORT: '0',
      // One thread starts in two thirds of the time. The published program keeps its
      // default.
      ...(options.command === undefined && { HTTP_THREADS: '1' }),
      // A log in JSON can be read here.
      ...(onTerminal && { PATH, SHELL: '/bin/sh', LOG_FORMAT: 'json' }),
      DATABASE_URL: databaseUrl,
      ...environment,
    },
    keepsOutput: !keepsOnlyWarnings,
  })
  if (temporary) {
    program.ended.finally(() => temporary[Symbol.dispose]()).catch(() => {})
  }
  const log: LogLine[] = []
  const lines = createInterface(program.process.stdout).on('line', text => {
    const isWanted =
      !keepsOnlyWarnings || !/^\{"level":"info",(?!.*"msg":"listening")/.test(text)
    if (isWanted && text.startsWith('{')) {
      log.push(JSON.parse(text))
    }
  })
  return {
    ...program,
    /** Every line of its log so far. */
    log,
    /** Returns the lines that are warnings or worse. */
    warnings: () => log.filter(isWarning),
    /** Resolves to the first line of its log with this message. */
    async logged(message: string) {
      for (;;) {
        const line = log.find(({ msg }) => msg === message)
        if (line !== undefined) {
          return line
        }
        const ending = await Promise.race([
          once(lines, 'line').then(() => undefined),
          program.ended,
        ])
        if (ending !== undefined && !log.some(({ msg }) => msg === message)) {
          throw new Error(
            `the server ended with ${ending}, and printed:\n${program.errors()}`,
          )
        }
      }
    },
  }
}

/**
 * Starts our server and waits until it listens.
 *
 * @throws Error if it ends instead
 */
export async function startServer(options: ServerOptions = {}) {
  const server = launchServer(options)
  const timer = setTimeout(() => server.end('SIGKILL'), startTimeoutMs)
  const { url } = await server.logged('listening').finally(() => clearTimeout(timer))
  return { ...server, url: url as string }
}

/** Returns what runs the command on a terminal. */
function onTerminalOf(command: Command): Command {
  const quoted = command.map(each => `'${each}'`).join(' ')
  return ['script', '-qec', `exec ${quoted}`, '/dev/null']
}
