import {
  Command,
  CommanderError,
  type CommandUnknownOpts,
} from '@commander-js/extra-typings'
import { defaultStoreUrl, explain, printable, StoreInUseError } from '@plant-store/engine'
import manifest from '../package.json' with { type: 'json' }
import { CommandError, exitCodes } from './command-error.ts'
import { backup, check, restore } from './commands/backups.ts'
import { exportPlants } from './commands/export-plants.ts'
import { importPlants } from './commands/import-plants.ts'
import { removePlants } from './commands/remove-plants.ts'
import { serve } from './commands/serve.ts'
import { token } from './commands/tokens.ts'
import { webhook } from './commands/webhooks.ts'
import { ignoreStreamErrors, writeToStream } from './standard-output.ts'

export const program = new Command('plant-store')
  .version(manifest.version)
  .description('Serve a plant store, and manage its access tokens, plants and files.')
  .enablePositionalOptions()
  .addCommand(serve)
  .addCommand(token)
  .addCommand(webhook)
  .addCommand(importPlants)
  .addCommand(exportPlants)
  .addCommand(removePlants)
  .addCommand(backup)
  .addCommand(restore)
  .addCommand(check)
  .addHelpText(
    'after',
    `
DATABASE_URL names the store (${defaultStoreUrl} if it is not set).
Commands work while servers run, except restore and export --damaged. backup and restore are for files: use pg_dump and
pg_restore for PostgreSQL.

Exit codes:
  0    done
  1    failed; one line on standard error says why
  2    wrong usage: an unknown command or option, or an invalid value
  3    done, but some lines of an import were rejected, or some plants of a damaged store could not be read
  4    refused because a server has the store open
  130  interrupted
  141  the output was closed

With --json, results are JSON on standard output, and failures {"error": …} on standard error.

Examples:
  $ plant-store serve
  $ plant-store token create --name shop --scope write --expires 90d
  $ plant-store import plants.csv
  $ plant-store export | gzip > plants.ndjson.gz
  $ plant-store backup /backup/plants-$(date +%F).backup`,
  )

throwInsteadOfExiting(program)

/** Runs a command, and sets the exit code of the process. */
export async function run(args: readonly string[]): Promise<void> {
  ignoreStreamErrors()
  help = ''
  try {
    await program.parseAsync(upToUnknown(args), { from: 'user' }).catch(printHelp)
  } catch (error) {
    process.exitCode = printError(error, args.includes('--json'))
  }
}

/**
 * Returns the arguments, or only those up to a command that does not exist, which commander refuses. With `help` before it
 * or `--help` after it, commander would print the help of the program.
 */
function upToUnknown(args: readonly string[]): readonly string[] {
  const path: string[] = []
  let command: CommandUnknownOpts = program
  for (const word of args) {
    if (word.startsWith('-') || command.commands.length === 0) {
      return args
    }
    if (word === 'help') {
      continue
    }
    path.push(word)
    const next = command.commands.find(each => each.name() === word)
    if (next === undefined) {
      return path
    }
    command = next
  }
  return args
}

/** What commander prints on standard output: help, or the version. */
let help = ''

/** Prints what commander wanted to, because it would not notice that it cannot. */
async function printHelp(error: unknown): Promise<never> {
  await writeToStream(process.stdout, help === '' ? [] : [help])
  throw error
}

/** Makes commander throw instead of ending the process, so that one place does. */
function throwInsteadOfExiting(command: CommandUnknownOpts): void {
  command.exitOverride().configureOutput({
    writeOut: text => {
      help += text
    },
    outputError: (text, write) => {
      const words = oneLine(text).replace(/^error: /, '')
      write(`plant-store: ${printable(words)} (see --help)\n`)
    },
  })
  for (const each of command.commands) {
    throwInsteadOfExiting(each)
  }
}

function printError(error: unknown, json: boolean): number {
  if (error instanceof AggregateError) {
    return Math.max(...error.errors.map(each => printError(each, json)))
  }
  // Commander has printed its message, and help is not an error.
  if (error instanceof CommanderError) {
    return error.exitCode === 0 ? exitCodes.done : exitCodes.usage
  }
  if (error instanceof CommandError && error.exitCode === exitCodes.outputClosed) {
    return error.exitCode
  }
  const message = oneLine(explain(error as Error))
  process.stderr.write(
    `${printable(json ? JSON.stringify({ error: message }) : `plant-store: ${message}`)}\n`,
  )
  if (error instanceof StoreInUseError) {
    return exitCodes.inUse
  }
  return error instanceof CommandError ? error.exitCode : exitCodes.failed
}

function oneLine(text: string): string {
  return text.trim().replaceAll(/\s*\n\s*/g, ' ')
}
