import { Command } from '@commander-js/extra-typings'
import { bytes } from '@plant-store/api/units'
import { createPlantUseCases, isDomainError } from '@plant-store/domain'
import { messageOf } from '@plant-store/engine'
import type { Storage } from '@plant-store/persistence'
import { CommandError, exitCodes, Interruption } from '../command-error.ts'
import { isSameFile, refuseStore } from '../files/output-file.ts'
import { columnsInWords } from '../formats/csv.ts'
import { type Entry, lineBytesMaxDefault, plantReading } from '../formats/lines.ts'
import { argument, filePath, inputFormatOption, jsonOption } from '../options.ts'
import { print } from '../output.ts'
import { openStore, storeUrl } from '../store-in-environment.ts'
import { ImportResult } from './import-result.ts'
import { noneIn, openLines } from './read-lines.ts'

export const importPlants = new Command('import')
  .description(
    'Import plants from NDJSON (one JSON object a line, as in POST /plants) or CSV.',
  )
  .argument('<file>', 'to read, plain or gzipped; - for standard input')
  .addOption(inputFormatOption)
  .option(
    '--replace',
    'replace plants whose ids are taken, instead of rejecting the lines',
  )
  .option('--dry-run', 'judge every line, and store nothing')
  .option('--no-announce', 'send no webhooks for these plants')
  .option(
    '--rejects <file>',
    'the file for rejected lines (by default FILE.rejects.csv or .ndjson, and for - plant-store.rejects.…)',
    filePath,
  )
  .option(
    '--line-limit <bytes>',
    'reject longer lines',
    argument(bytes(2 ** 10, 2 ** 28)),
    lineBytesMaxDefault,
  )
  .addOption(jsonOption)
  .addHelpText(
    'after',
    `
Creates the store if it does not exist. Each line follows the rules of POST /plants. A bad line does not stop the
import: it goes into the rejects file, with its number and the reason, and the exit code is 3. Rejects of CSV are CSV with
its header, which can be imported when they are corrected. Those of NDJSON are lines with "line", "reason" and "raw"
("rawBase64" if the line is not UTF-8). An import with rejects replaces the rejects file.

The first line of CSV names ${columnsInWords(plantReading.required)}, in any order and in upper
or lower case. Other columns are ignored, as other members of JSON are. A field with nothing in it is absent, so a name
is then missing. "" is an empty text. Fields are separated by commas, semicolons, tabs or |, as the first line shows, or
as a line such as sep=; before it says. Rows without content are skipped, and the last fields of a row may be missing.
If the header has blanks around these names, blanks around fields without quotes are no part of them.

A file is UTF-8, or UTF-16 as spreadsheets write it. Lines end in LF, CR LF, or all of them in CR alone.

Plants are stored 1,000 at a time. After an interruption, run the import again: plants already stored are counted as
such, or written again with --replace. --dry-run does not look for ids in the store.`,
  )
  .action(runImport)

type Options = ReturnType<typeof importPlants.opts>

/** @throws CommandError if the import was interrupted */
async function runImport(from: string, options: Options) {
  const { dryRun, json } = options
  using interruption = new Interruption()
  const { signal } = interruption
  const lines = await openLines(from, plantReading, options, signal)
  const name = from === '-' ? 'plant-store' : from
  const rejectsPath = options.rejects ?? `${name}.rejects.${lines.format}`
  if (isSameFile(from, rejectsPath)) {
    throw new CommandError(
      `${rejectsPath} is the file to import: name another file with --rejects`,
      exitCodes.usage,
    )
  }
  refuseStore(rejectsPath, storeUrl())

  using result = new ImportResult(rejectsPath, lines.reader)
  await using storage = dryRun ? undefined : await openStore(patience)
  const storePlants = storage && storing(storage, options)
  const startedMs = performance.now()
  await importEntries(lines.parts, storePlants, result)

  const seconds = (performance.now() - startedMs) / 1000
  const { counts } = result
  const hasRejects = counts.rejected > 0
  const facts = {
    ...counts,
    rejects: hasRejects ? rejectsPath : null,
    seconds,
    interrupted: signal.aborted,
  }
  let words = dryRun ? result.describeJudged() : result.describeImported(seconds)
  if (counts.read === 0) {
    words += `: ${noneIn(from)}`
  }
  await print({ json }, facts, words)

  if (signal.aborted) {
    const done = dryRun
      ? 'the rest was not judged'
      : 'the plants counted above are stored'
    throw new CommandError(`interrupted: ${done}`, exitCodes.interrupted)
  }
  if (hasRejects) {
    process.exitCode = exitCodes.incomplete
  }
}

/**
 * An import waits for the locks of other programs. Beside a backup on SQLite, it waits at
 * a shorter WAL than a server, which can go on meanwhile.
 */
const patience = {
  timeoutMs: 30_000,
  lockTimeoutMs: 600_000,
  walBytesMax: 512 * 1024 * 1024,
}

/** Returns what stores plants, and resolves to the outcome of each. */
function storing({ plants }: Storage, { replace, announce }: Options) {
  const useCases = createPlantUseCases({ plants: announce ? plants : plants.unannounced })
  return replace ? useCases.replaceAll : useCases.createAll
}

/**
 * @param storePlants absent in a dry run
 * @throws CommandError that says what was imported before the failure
 */
async function importEntries(
  parts: AsyncIterable<readonly Entry[]>,
  storePlants: ReturnType<typeof storing> | undefined,
  result: ImportResult,
) {
  try {
    // Parts are stored one at a time. While the next one is parsed, servers can write
    // to a store in a file.
    for await (const part of parts) {
      const accepted = part.filter(entry => 'item' in entry)
      const outcomes = await storePlants?.(accepted.map(({ item }) => item))
      result.add(part, outcomes)
    }
  } catch (cause) {
    // The store may have kept the last part, or some of it, although it failed.
    const stored = isDomainError(cause)
      ? 'what is stored stays: run the import again'
      : result.describeStored()
    throw new CommandError(`${messageOf(cause)} (${stored})`)
  }
}
