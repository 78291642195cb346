import { readFileSync } from 'node:fs'
import { defaultStoreUrl, explain, StoreInUseError, storageName } from '@plant-store/persistence'
import { Argument, Command, CommanderError, Option } from 'commander'
import { grant, lineLimit, moment, tokenName } from './arguments.ts'
import { columnsInWords } from './csv.ts'
import { exportPlants } from './export.ts'
import { exitCodes, Failure, onInterrupt } from './failure.ts'
import { type FormatName, formats, importPlants } from './import.ts'
import { lineBytesMaxDefault } from './lines.ts'
import type { Output } from './output.ts'
import { backUp, check, restore } from './store-commands.ts'
import { exportTokens, importTokens } from './token-file.ts'
import { createToken, listTokens, revokeToken } from './tokens.ts'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))

const program = new Command('plant-store')
  .version(version)
  .description('Looks after a plant store: its access tokens, its plants, its file.')
  .enablePositionalOptions()
  .addHelpText(
    'after',
    `
The store is the one that DATABASE_URL names (${defaultStoreUrl} if it is not set), the same as the server's.
Servers that have it open may go on working, except for restore. What backup and restore are for a file, pg_dump and
pg_restore are for PostgreSQL.

Exit codes:
  0    done
  1    failed; one line on the standard error says why
  2    wrong usage: an unknown command or option, or a value that can't be
  3    done, but some lines of an import were rejected
  4    refused, because a server has the store open
  130  interrupted
  141  nobody reads the output any more

With --json, results are JSON on the standard output, and failures {"error": …} on the standard error.

Examples:
  $ plant-store token create --name shop --scope write --expires 90d
  $ plant-store import plants.csv
  $ plant-store export | gzip > plants.ndjson.gz
  $ plant-store backup /backup/plants-$(date +%F).db`,
  )

const token = program.command('token').description('Create, list, revoke and move access tokens.')

token
  .command('create')
  .description(
    'Create a token and print it. This is the only time that it is shown: the store keeps its SHA-256.',
  )
  .requiredOption('--name <name>', 'names its holder, in lists and in logs', tokenName)
  .addOption(
    new Option(
      '--scope <scope>',
      'what it is for, can be given several times: read, write (which includes read), metrics',
    )
      .argParser(grant)
      .default(undefined, 'write'),
  )
  .option(
    '--expires <time>',
    'when it stops being valid: 12h, 90d, 52w from now (never, if not given)',
    moment,
  )
  .option('--json', 'print JSON')
  .action(async options =>
    createToken(storeUrl(), { ...options, scope: options.scope ?? ['write'] }, outputOf(options)),
  )
token
  .command('list')
  .description('List the tokens: name, scopes, created, expires, last used (to the minute). Never the token.')
  .option('--json', 'print JSON')
  .action(async options => listTokens(storeUrl(), outputOf(options)))
token
  .command('revoke')
  .description('Revoke a token. Servers refuse it within 5 seconds.')
  .argument('<name>', 'of the token')
  .option('--json', 'print JSON')
  .action(async (name, options) => revokeToken(storeUrl(), name, outputOf(options)))
token
  .command('export')
  .description('Write all tokens as NDJSON (SHA-256, never the token), to move them to another store.')
  .argument('[file]', 'to write (the standard output, if not given)', '-')
  .option('--force', 'replace a file that is already there', false)
  .option('--json', 'print JSON; on the standard error if the tokens go to the standard output')
  .action(async (file, options) => {
    const output: Output = { ...outputOf(options), descriptor: file === '-' ? 2 : 1 }
    await exportTokens(storeUrl(), { to: file, force: options.force }, output)
  })
token
  .command('import')
  .description(
    'Store the tokens that were exported from another store, all or none. Those that were revoked since are valid again.',
  )
  .argument('<file>', 'to read, or - for the standard input')
  .option('--json', 'print JSON')
  .action(async (file, options) => importTokens(storeUrl(), file, outputOf(options)))

program
  .command('import')
  .description('Load plants from NDJSON (a JSON object a line, as POST /plants takes it) or CSV.')
  .argument('<file>', 'to read, or - for the standard input')
  .addOption(
    new Option('--format <format>', 'of the file (told by its content, if not given)').choices(formats),
  )
  .option('--replace', 'replace plants whose ids are taken, instead of rejecting the lines', false)
  .option('--strict', 'stop at the first line that would be rejected, and keep nothing', false)
  .option('--rejects <file>', 'where rejected lines go (FILE.rejects.ndjson, if not given)')
  .option('--line-limit <bytes>', 'longer lines are rejected', lineLimit, lineBytesMaxDefault)
  .option('--json', 'print JSON')
  .addHelpText(
    'after',
    `
A store that is not there is made. Every line is judged as POST /plants would judge it. A bad line does not stop the
others: it goes into the rejects file as {"line", "reason", "raw"}, a line each ("rawBase64" where it is not UTF-8), and
the exit code is 3. The rejects file is written anew by every import that has rejects.

CSV begins with a line that names ${columnsInWords}, in any order.
An optional text with nothing between the commas is absent; "" is an empty one.

Plants are kept as the import goes on, ${'20,000'} at a time. An import that was interrupted can be run again: a plant
that is already there, with the same texts, is counted as that, or with --replace written once more.

--strict collects the plants beside the store (in the folder for temporary files, or in a temporary table of PostgreSQL)
and stores them in one transaction at the end. Servers can't write to a file during that: some seconds for a million
plants, after which they answer 503. On PostgreSQL only those wait that change the same plants.`,
  )
  .action(async (file, options) => {
    const request = {
      from: file,
      ...(options.format && { format: options.format as FormatName }),
      onTaken: options.replace ? ('replace' as const) : ('keep' as const),
      strict: options.strict,
      rejects: options.rejects ?? (file === '-' ? 'plant-store.rejects.ndjson' : `${file}.rejects.ndjson`),
      lineBytesMax: options.lineLimit,
    }
    process.exitCode = await importPlants(storeUrl(), request, outputOf(options), onInterrupt())
  })

program
  .command('export')
  .description('Write all plants in the order of their ids, as they are at this moment.')
  .argument('[file]', 'to write (the standard output, if not given)', '-')
  .addOption(new Option('--format <format>', 'to write').choices(formats).default('ndjson'))
  .option('--force', 'replace a file that is already there', false)
  .option('--json', 'print JSON; on the standard error if the plants go to the standard output')
  .addHelpText(
    'after',
    `
Changes that servers make meanwhile are not in it. Importing it into an empty store makes the same plants of it, and
exporting those gives the same bytes, from a file as from PostgreSQL. Access tokens are not in it: token export and
token import move them. While it runs, the log of a file can not shrink,
nor can PostgreSQL clean up: don't leave it waiting.`,
  )
  .action(async (file, options) => {
    const output: Output = { ...outputOf(options), descriptor: file === '-' ? 2 : 1 }
    const request = { to: file, format: options.format as FormatName, force: options.force }
    await exportPlants(storeUrl(), request, output, onInterrupt())
  })

program
  .command('backup')
  .description(
    'Copy the store as it is at this moment into a file, while servers go on working; then check the copy.',
  )
  .argument('<file>', 'to write')
  .option('--force', 'replace a file that is already there', false)
  .option('--json', 'print JSON')
  .action(async (file, options) =>
    backUp(storeUrl(), { to: file, force: options.force }, outputOf(options), onInterrupt()),
  )

program
  .command('restore')
  .description(
    'Put a backup in the place of the store, once it has been checked. No server may have the store open.',
  )
  .argument('<file>', 'made by backup')
  .option('--force', 'replace a store that is already there', false)
  .option('--json', 'print JSON')
  .action(async (file, options) =>
    restore(storeUrl(), { from: file, force: options.force }, outputOf(options), onInterrupt()),
  )

program
  .command('check')
  .description(
    'Check every page of the store (but of PostgreSQL only that it can be read), and count what is in it.',
  )
  .addArgument(new Argument('[file]', 'to check instead, such as a backup'))
  .option('--json', 'print JSON')
  .action(async (file, options) => check(storeUrl(), file, outputOf(options)))

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(exitCodes.outputClosed)
})
try {
  quietly(program)
  await program.parseAsync()
} catch (error) {
  process.exitCode = report(error)
}

/** Lets commander throw, so that there is one place that ends the process. */
function quietly(command: Command): void {
  command.exitOverride().configureOutput({
    outputError: (text, write) => {
      write(`plant-store: ${oneLine(text).replace(/^error: /, '')} (--help tells what it takes)\n`)
    },
  })
  for (const each of command.commands) quietly(each)
}

/** @returns the exit code */
function report(error: unknown): number {
  // Commander has told it already; asking for help is no error.
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.usage
  const message = oneLine(explain(error as Error))
  const json = process.argv.includes('--json')
  process.stderr.write(json ? `${JSON.stringify({ error: message })}\n` : `plant-store: ${message}\n`)
  if (error instanceof StoreInUseError) return exitCodes.inUse
  return error instanceof Failure ? error.exitCode : exitCodes.failed
}

function oneLine(text: string): string {
  return text.trim().replaceAll(/\s*\n\s*/g, ' ')
}

function outputOf({ json = false }: { json?: boolean }): Output {
  return { json }
}

function storeUrl(): string {
  const { DATABASE_URL } = process.env
  const url = DATABASE_URL || defaultStoreUrl
  try {
    if (storageName(url) === ':memory:') throw new Error('must not be a store in the memory of one process')
  } catch (error) {
    throw new Failure(`DATABASE_URL ${(error as Error).message}`, exitCodes.usage)
  }
  return url
}
