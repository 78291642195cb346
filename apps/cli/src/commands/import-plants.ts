import { Command, InvalidArgumentError, Option } from '@commander-js/extra-typings'
import { createPlantStore, isDomainError, type Plant } from '@plant-store/domain'
import { explain } from '@plant-store/persistence'
import { exitCodes, Failure } from '../failure.ts'
import { openInput } from '../files/input-file.ts'
import { isSameFile, refuseStore } from '../files/output-file.ts'
import { createRejectsFile } from '../files/rejects-file.ts'
import { columnsInWords } from '../formats/csv.ts'
import { detectFormat, formatNames, formats } from '../formats/format.ts'
import { lineBytesMaxDefault, wholeLines } from '../formats/lines.ts'
import { openStore, storeUrl } from '../store-in-environment.ts'
import { onInterrupt } from '../terminal/interrupt.ts'
import { jsonOption, print } from '../terminal/output.ts'
import { showProgress } from '../terminal/progress.ts'
import { inBatches } from './import-batches.ts'
import { ImportCounts } from './import-counts.ts'

export const importPlants = new Command('import')
  .description('Import plants from NDJSON (one JSON object a line, as in POST /plants) or CSV.')
  .argument('<file>', 'to read, plain or gzipped; - for standard input')
  .addOption(
    new Option('--format <format>', 'of the file (by default detected from its content)').choices(
      formatNames,
    ),
  )
  .option('--replace', 'replace plants whose ids are taken, instead of rejecting the lines')
  .option('--dry-run', 'judge every line, and store nothing')
  .option('--no-announce', 'send no webhooks for these plants')
  .option('--rejects <file>', 'the file for rejected lines (by default FILE.rejects.ndjson)')
  .option('--line-limit <bytes>', 'reject longer lines', lineLimit, lineBytesMaxDefault)
  .addOption(jsonOption)
  .addHelpText(
    'after',
    `
Creates the store if it does not exist. Each line follows the rules of POST /plants. A bad line does not stop the
import: it goes into the rejects file as a line of JSON with "line", "reason" and "raw" ("rawBase64" if it is not UTF-8),
and the exit code is 3. An import with rejects replaces the rejects file.

The first line of CSV names ${columnsInWords}, in any order.
An optional member with nothing between the commas is absent. "" is an empty text.

Plants are stored 20,000 at a time. After an interruption, run the import again: plants already stored are counted as
such, or written again with --replace. --dry-run does not look for ids in the store.`,
  )
  .action(runImport)

function lineLimit(text: string): number {
  const bytes = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (bytes >= 1024 && bytes <= 256 * 1024 * 1024) return bytes
  throw new InvalidArgumentError('It must be a number of bytes from 1024 to 268435456.')
}

/** How long it waits for another program's lock. */
const timeoutMs = 30_000

async function runImport(from: string, options: ReturnType<typeof importPlants.opts>): Promise<void> {
  const { replace = false, dryRun = false, announce, lineLimit, json } = options
  const rejectsPath = options.rejects ?? `${from === '-' ? 'plant-store' : from}.rejects.ndjson`
  const signal = onInterrupt()
  const input = await openInput(from, signal)
  const format = detectFormat(input.beginning, from, options.format)
  if (isSameFile(from, rejectsPath)) {
    throw new Failure(
      `${rejectsPath} is the file to import: name another file with --rejects`,
      exitCodes.usage,
    )
  }
  const url = storeUrl()
  refuseStore(rejectsPath, url)
  await using storage = dryRun ? undefined : await openStore({ url, timeoutMs })
  const store = storage && createPlantStore(storage)
  const add = (plants: readonly Plant[]) =>
    replace ? store?.replaceAll(plants, { announce }) : store?.createAll(plants, { announce })
  const writeRejects = createRejectsFile(rejectsPath)
  const counts = new ImportCounts()
  const startedMs = performance.now()
  let interrupted: boolean
  {
    using progress = await showProgress('plant', !json)
    let kept = 'nothing was imported'
    try {
      const entries = formats[format].read(wholeLines(input.chunks, lineLimit), lineLimit)
      for await (const batch of inBatches(entries, signal)) {
        // One at a time: while the next lines are parsed, servers can write to a store in a file.
        const outcomes = await add(batch.flatMap(entry => ('plant' in entry ? [entry.plant] : [])))
        const last = batch.at(-1)
        if (last && !dryRun) kept = `the lines before line ${last.line + 1} were imported`
        writeRejects(counts.add(batch, outcomes))
        progress.update(counts.read, input.bytesRead(), input.bytes)
      }
      interrupted = signal.aborted
    } catch (cause) {
      const exitCode = cause instanceof Failure ? cause.exitCode : exitCodes.failed
      // The store may have kept the last batch, or part of it, all the same.
      const rest = isDomainError(cause) ? 'what is stored stays: run the import again' : kept
      throw new Failure(`${explain(cause as Error)} (${rest})`, exitCode)
    }
  }

  const seconds = (performance.now() - startedMs) / 1000
  const result = { ...counts, rejects: counts.rejected > 0 ? rejectsPath : null, seconds, interrupted }
  print({ json }, result, dryRun ? counts.verdict(rejectsPath) : counts.summary(rejectsPath, seconds))
  if (interrupted)
    throw new Failure(
      `interrupted: ${dryRun ? 'the rest was not judged' : 'the plants counted above are stored'}`,
      exitCodes.interrupted,
    )
  if (counts.rejected > 0) process.exitCode = exitCodes.incomplete
}
