import {
  Command,
  CommanderError,
  type CommandUnknownOpts,
} from '@commander-js/extra-typings'
import {
  defaultStoreUrl,
  messageOf,
  NoStoreError,
  printable,
  StoreInUseError,
} from '@plant-store/engine'
import manifest from '../package.json' with { type: 'json' }
import { CommandError, exitCodes } from './command-error.ts'
import { backup, check, restore } from './commands/backups.ts'
import { exportPlants } from './commands/export-plants.ts'
import { importPlants } from './commands/import-plants.ts'
import { removePlants } from './commands/remove-plants.ts'
import { serve } from './commands/serve.ts'
import { token } from './commands/tokens.ts'
import { webhook } from './commands/webhooks.ts'
import { writeToStream } from './output.ts'

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

/** The help or the version that commander wants to print on standard output. */
let helpText = ''

/** Runs a command, and sets the exit code of the process. */
export async function run(args: readonly string[]): Promise<void> {
  // A failure of a stream does not end the process, because each write reports its own.
  process.stdout.on('error', () => {})
  process.stderr.on('error', () => {})
  helpText = ''
  try {
    await program.parseAsync(cutAfterUnknown(args), { from: 'user' }).catch(printHelp)
  } catch (error) {
    process.exitCode = printError(error, args.includes('--json'))
  }
}

/**
 * Returns the arguments, or only the commands up to one that does not exist, so that
 * commander refuses that one. With `help` before it or `--help` after it, commander would
 * print the help of the program instead.
 */
function cutAfterUnknown(args: readonly string[]): readonly string[] {
  const commands: string[] = []
  let command: CommandUnknownOpts = program
  for (const word of args) {
    if (word.startsWith('-') || command.commands.length === 0) {
      return args
    }
    if (word === 'help') {
      continue
    }
    commands.push(word)
    const next = command.commands.find(subcommand => subcommand.name() === word)
    if (next === undefined) {
      return commands
    }
    command = next
  }
  return args
}

/**
 * Prints the help before it throws what commander has thrown, which it does after help,
 * too. Commander itself would not notice that the help cannot be written.
 */
async function printHelp(error: unknown): Promise<never> {
  if (helpText !== '') {
    await writeToStream(process.stdout, [helpText])
  }
  throw error
}

/**
 * Makes commander throw instead of ending the process, so that `run` sets the exit code.
 */
function throwInsteadOfExiting(command: CommandUnknownOpts) {
  command.exitOverride().configureOutput({
    writeOut: text => {
      helpText += text
    },
    // `printError` prints errors.
    outputError() {},
  })
  for (const subcommand of command.commands) {
    throwInsteadOfExiting(subcommand)
  }
}

/** Prints an error in one line, and returns the exit code. */
function printError(error: unknown, isJson: boolean): number {
  if (error instanceof AggregateError) {
    return Math.max(...error.errors.map(each => printError(each, isJson)))
  }
  if (error instanceof CommanderError) {
    return printUsageError(error, isJson)
  }

  const exitCode = exitCodeOf(error)
  if (exitCode !== exitCodes.outputClosed) {
    const advice =
      error instanceof NoStoreError
        ? ': set DATABASE_URL, change to the folder of the server, or start the server first'
        : ''
    writeError(messageOf(error) + advice, isJson)
  }
  return exitCode
}

/** Prints what is wrong with the arguments, and returns the exit code. */
function printUsageError(error: CommanderError, isJson: boolean) {
  const { code, exitCode, message } = error
  // Help that was asked for is no error.
  if (exitCode === 0) {
    return exitCodes.done
  }
  // Commander has printed the help, because the command was missing.
  if (code !== 'commander.help') {
    const words = message.replace(/^error: /, '')
    writeError(`${words} (see --help)`, isJson)
  }
  return exitCodes.usage
}

function exitCodeOf(error: unknown) {
  if (error instanceof StoreInUseError) {
    return exitCodes.inUse
  }
  if (error instanceof CommandError) {
    return error.exitCode
  }
  return exitCodes.failed
}

function writeError(words: string, isJson: boolean) {
  const message = words.trim().replaceAll(/\s*\n\s*/g, ' ')
  const line = isJson ? JSON.stringify({ error: message }) : `plant-store: ${message}`
  process.stderr.write(`${printable(line)}\n`)
}
