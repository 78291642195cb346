import { CommanderError, type CommandUnknownOpts } from '@commander-js/extra-typings'
import { explain, StoreInUseError } from '@plant-store/persistence'
import { exitCodes, Failure } from './failure.ts'
import { program } from './program.ts'
import { printable } from './terminal/output.ts'

quietly(program)

/** Runs a command, and sets the exit code of the process. */
export async function run(args: readonly string[]): Promise<void> {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(exitCodes.outputClosed)
  })
  try {
    await program.parseAsync(args, { from: 'user' })
  } catch (error) {
    process.exitCode = report(error, args.includes('--json'))
  }
}

/** Makes commander throw, so that one place ends the process. */
function quietly(command: CommandUnknownOpts): void {
  command.exitOverride().configureOutput({
    outputError: (text, write) => {
      write(`plant-store: ${oneLine(text).replace(/^error: /, '')} (see --help)\n`)
    },
  })
  for (const each of command.commands) quietly(each)
}

function report(error: unknown, json: boolean): number {
  // Commander has printed its message, and help is not an error.
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.usage
  const message = oneLine(explain(error as Error))
  process.stderr.write(
    `${printable(json ? JSON.stringify({ error: message }) : `plant-store: ${message}`)}\n`,
  )
  if (error instanceof StoreInUseError) return exitCodes.inUse
  return error instanceof Failure ? error.exitCode : exitCodes.failed
}

function oneLine(text: string): string {
  return text.trim().replaceAll(/\s*\n\s*/g, ' ')
}
