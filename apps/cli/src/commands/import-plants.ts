import {
  type OnTaken,
  OutcomeUnknownError,
  openArchive,
  type PlantArchive,
  type StagedLoad,
} from '@plant-store/persistence'
import { Command, InvalidArgumentError, Option } from 'commander'
import { exitCodes, Failure } from '../exit-codes.ts'
import { openInput } from '../files/input-file.ts'
import { isSameFile, refuseStore } from '../files/output-file.ts'
import { createRejectsFile } from '../files/rejects-file.ts'
import { columnsInWords } from '../formats/csv.ts'
import { detectFormat, type FormatName, formatNames, formats } from '../formats/format.ts'
import { lineBytesMaxDefault, wholeLines } from '../formats/lines.ts'
import { storeUrl } from '../store-in-environment.ts'
import { onInterrupt } from '../terminal/interrupt.ts'
import { jsonOption, print } from '../terminal/output.ts'
import { showProgress } from '../terminal/progress.ts'
import { inBatches } from './import-batches.ts'
import { ImportCounts } from './import-counts.ts'

interface ImportOptions {
  readonly format?: FormatName
  readonly replace?: boolean
  readonly strict?: boolean
  readonly rejects?: string
  readonly lineLimit: number
  readonly json?: boolean
}

export const importPlants = new Command('import')
  .description('Load plants from NDJSON (a JSON object a line, as POST /plants takes it) or CSV.')
  .argument('<file>', 'to read, or - for the standard input; gzip may have compressed it')
  .addOption(
    new Option('--format <format>', 'of the file (told by its content, if not given)').choices(formatNames),
  )
  .option('--replace', 'replace plants whose ids are taken, instead of rejecting the lines')
  .option('--strict', 'stop at the first line that would be rejected, and keep nothing')
  .option('--rejects <file>', 'where rejected lines go (FILE.rejects.ndjson, if not given)')
  .option('--line-limit <bytes>', 'longer lines are rejected', lineLimit, lineBytesMaxDefault)
  .addOption(jsonOption)
  .addHelpText(
    'after',
    `
A store that is not there is made. Every line is judged as POST /plants would judge it. A bad line does not stop the
others: it goes into the rejects file as {"line", "reason", "raw"}, a line each ("rawBase64" where it is not UTF-8), and
the exit code is 3. The rejects file is written anew by every import that has rejects.

CSV begins with a line that names ${columnsInWords}, in any order.
An optional text with nothing between the commas is absent; "" is an empty one.

Plants are kept as the import goes on, 20,000 at a time. An import that was interrupted can be run again: a plant
that is already there, with the same texts, is counted as that, or with --replace written once more.

--strict collects the plants beside the store (in the folder for temporary files, or in a temporary table of PostgreSQL)
and stores them in one transaction at the end. Servers can't write to a file during that: some seconds for a million
plants, after which they answer 503. On PostgreSQL only those wait that change the same plants.`,
  )
  .action(run)

function lineLimit(text: string): number {
  const bytes = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (bytes >= 1024 && bytes <= 256 * 1024 * 1024) return bytes
  throw new InvalidArgumentError('It must be a number of bytes from 1024 to 268435456.')
}

async function run(from: string, options: ImportOptions): Promise<void> {
  const { replace, strict = false, lineLimit, json } = options
  const rejectsPath = options.rejects ?? `${from === '-' ? 'plant-store' : from}.rejects.ndjson`
  const signal = onInterrupt()
  const url = storeUrl()
  const input = await openInput(from, signal)
  const format = detectFormat(input.beginning, from, options.format)
  if (from !== '-' && isSameFile(from, rejectsPath)) {
    throw new Failure(
      `${rejectsPath} is what is imported: name another file for the rejects`,
      exitCodes.usage,
    )
  }
  refuseStore(rejectsPath, url)
  await using archive = await openArchive(url)
  await using load = await beginLoad(archive, replace ? 'replace' : 'keep', strict)
  const writeRejects = createRejectsFile(rejectsPath)
  const counts = new ImportCounts()
  const startedMs = performance.now()
  let interrupted = false
  {
    using progress = await showProgress('plant', !json)
    let kept = 'nothing was imported'
    try {
      const entries = formats[format].read(wholeLines(input.chunks, lineLimit), lineLimit)
      for await (const batch of inBatches(entries, signal)) {
        if (strict) signal.throwIfAborted()
        const outcomes = await load.add(batch.flatMap(entry => ('value' in entry ? [entry.value] : [])))
        const last = batch.at(-1)
        if (last && !strict) kept = `what came before line ${last.line + 1} is kept`
        const rejected = counts.add(batch, outcomes)
        if (strict && rejected[0]) throw new Failure(`line ${rejected[0].line}: ${rejected[0].reason}`)
        writeRejects(rejected)
        progress.update(counts.read, input.bytesRead(), input.bytes)
      }
      interrupted = signal.aborted
      if (strict) {
        signal.throwIfAborted()
        progress.note('storing')
      }
      const outcome = await load.keep()
      if (outcome !== 'kept')
        throw new Failure(`id ${outcome.takenMeanwhile} was taken by another plant meanwhile`)
    } catch (cause) {
      const rest = cause instanceof OutcomeUnknownError ? 'import it again' : kept
      const exitCode = cause instanceof Failure ? cause.exitCode : exitCodes.failed
      throw new Failure(`${(cause as Error).message} (${rest})`, exitCode, { cause })
    }
  }

  const seconds = (performance.now() - startedMs) / 1000
  const result = { ...counts, rejects: counts.rejected > 0 ? rejectsPath : null, seconds, interrupted }
  print({ json }, result, counts.summary(rejectsPath, seconds))
  if (interrupted) throw new Failure('interrupted: what is counted above is kept', exitCodes.interrupted)
  if (counts.rejected > 0) process.exitCode = exitCodes.rejects
}

/** Plants go into the store batch by batch, or all of them at the end where the import is strict. */
async function beginLoad(archive: PlantArchive, onTaken: OnTaken, strict: boolean): Promise<StagedLoad> {
  if (strict) return archive.stage(onTaken)
  return {
    add: plants => archive.load(plants, onTaken),
    keep: async () => 'kept',
    async [Symbol.asyncDispose]() {},
  }
}
