import { fileURLToPath } from 'node:url'
import { launch } from './program.ts'

/** The program of the command line. */
export const commandProgram = fileURLToPath(
  new URL('../../../apps/cli/dist/main.js', import.meta.url),
)

export interface CommandOptions {
  readonly databaseUrl?: string
  readonly environment?: Readonly<Record<string, string>>
  readonly folder?: string
  /** Its standard input, by default empty. */
  readonly input?: string | undefined
}

export interface Result {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export type StartedCommand = ReturnType<typeof startCommand>

/** Starts the command line. */
export function startCommand(args: readonly string[], options: CommandOptions = {}) {
  const { databaseUrl, environment, folder, input } = options
  const program = launch([process.execPath, commandProgram, ...args], {
    folder,
    environment: { DATABASE_URL: databaseUrl, ...environment },
  })
  program.process.stdin.end(input)
  const result: Promise<Result> = program.ended.then(ending => ({
    code: typeof ending === 'number' ? ending : null,
    stdout: program.output(),
    stderr: program.errors(),
  }))
  return { ...program, result }
}
