import { Command, InvalidArgumentError, Option } from '@commander-js/extra-typings'
import { createPlantUseCases, isDomainError, type Plant } from '@plant-store/domain'
import { CommandError, exitCodes, inWords, onInterrupt } from '../command-error.ts'
import { type Input, openInput } from '../files/input-file.ts'
import { filePath, isSameFile, refuseStore } from '../files/output-file.ts'
import { columnsInWords } from '../formats/csv.ts'
import { detectFormat, formatNames, formats } from '../formats/formats.ts'
import {
  type Entry,
  lineBytesMaxDefault,
  lineEndOf,
  plantReading,
} from '../formats/lines.ts'
import { openStore, storeUrl } from '../store-in-environment.ts'
import { jsonOption, print, showProgress } from '../terminal.ts'
import { ImportResult, type Outcome } from './import-result.ts'

const lineLimitMin = 1024
const lineLimitMax = 256 * 1024 * 1024

export const importPlants = new Command('import')
  .description(
    'Import plants from NDJSON (one JSON object a line, as in POST /plants) or CSV.',
  )
  .argument('<file>', 'to read, plain or gzipped; - for standard input')
  .addOption(
    new Option(
      '--format <format>',
      'of the file (by default detected from its content)',
    ).choices(formatNames),
  )
  .option(
    '--replace',
    'replace plants whose ids are taken, instead of rejecting the lines',
  )
  .option('--dry-run', 'judge every line, and store nothing')
  .option('--no-announce', 'send no webhooks for these plants')
  .option(
    '--rejects <file>',
    'the file for rejected lines (by default FILE.rejects.ndjson, and for - plant-store.rejects.ndjson)',
    filePath,
  )
  .option('--line-limit <bytes>', 'reject longer lines', lineLimit, lineBytesMaxDefault)
  .addOption(jsonOption)
  .addHelpText(
    'after',
    `
Creates the store if it does not exist. Each line follows the rules of POST /plants. A bad line does not stop the
import: it goes into the rejects file as a line of JSON with "line", "reason" and "raw" ("rawBase64" if it is not UTF-8),
and the exit code is 3. An import with rejects replaces the rejects file.

The first line of CSV names ${columnsInWords(plantReading.required)}, in any order and in upper
or lower case. Other columns are ignored, as other members of JSON are. A field with nothing in it is absent, so a name
is then missing. "" is an empty text. Fields are separated by commas, semicolons, tabs or |, as the first line shows, or
as a line such as sep=; before it says. Rows without content are skipped, and the last fields of a row may be missing.

A file is UTF-8, or UTF-16 as spreadsheets write it. Lines end in LF, CR LF, or all of them in CR alone.

Plants are stored 1,000 at a time. After an interruption, run the import again: plants already stored are counted as
such, or written again with --replace. --dry-run does not look for ids in the store.`,
  )
  .action(runImport)

function lineLimit(text: string): number {
  const isNumber = /^\d{1,9}$/.test(text)
  const bytes = Number(text)
  if (isNumber && bytes >= lineLimitMin && bytes <= lineLimitMax) {
    return bytes
  }
  throw new InvalidArgumentError(
    `It must be a number of bytes from ${lineLimitMin} to ${lineLimitMax}.`,
  )
}

type Options = ReturnType<typeof importPlants.opts>

async function runImport(from: string, options: Options): Promise<void> {
  const signal = onInterrupt()
  const input = await openInput(from, signal)
  const formatName = detectFormat(input.beginning, from, options.format)
  const rejectsPath = rejectsPathOf(from, options)
  refuseRejects(rejectsPath, from)

  using result = new ImportResult(rejectsPath)
  await using opened = new AsyncDisposableStack()
  const store = await openStoring(options, opened)
  const startedMs = performance.now()
  const entries = formats[formatName].read(input.chunks, {
    ...plantReading,
    lineBytesMax: options.lineLimit,
    lineEnd: lineEndOf(input.beginning),
  })
  await importEntries(inParts(entries, signal), store, result, { ...input, ...options })

  const seconds = (performance.now() - startedMs) / 1000
  await report(result, options, { rejectsPath, seconds, isInterrupted: signal.aborted })
}

function rejectsPathOf(from: string, { rejects }: Options): string {
  if (rejects !== undefined) {
    return rejects
  }
  if (from === '-') {
    return 'plant-store.rejects.ndjson'
  }
  return `${from}.rejects.ndjson`
}

/** @throws CommandError if the rejects would replace the input or the store */
function refuseRejects(rejectsPath: string, from: string): void {
  if (isSameFile(from, rejectsPath)) {
    const advice = 'name another file with --rejects'
    throw new CommandError(
      `${rejectsPath} is the file to import: ${advice}`,
      exitCodes.usage,
    )
  }
  refuseStore(rejectsPath, storeUrl())
}

/** Stores plants, and resolves to the outcome of each. Absent in a dry run. */
type StorePlants = (plants: readonly Plant[]) => Promise<readonly Outcome[]>

async function openStoring(
  { replace, dryRun, announce }: Options,
  opened: AsyncDisposableStack,
): Promise<StorePlants | undefined> {
  if (dryRun) {
    return undefined
  }
  // PostgreSQL may wait for another program's lock.
  const storage = opened.use(await openStore({ timeoutMs: 30_000 }))
  const plants = announce ? storage.plants : storage.plants.unannounced
  const useCases = createPlantUseCases({ plants })
  if (replace) {
    return useCases.replaceAll
  }
  return useCases.createAll
}

/** @throws CommandError that says what was imported before the failure */
async function importEntries(
  parts: AsyncIterable<readonly Entry[]>,
  store: StorePlants | undefined,
  result: ImportResult,
  { json, bytes, bytesRead }: Pick<Options, 'json'> & Pick<Input, 'bytes' | 'bytesRead'>,
): Promise<void> {
  using progress = await showProgress('plant', !json)
  let imported = 'nothing was imported'
  try {
    // Parts are stored one at a time. While the next one is parsed, servers can write
    // to a store in a file.
    for await (const part of parts) {
      const accepted = part.filter(entry => 'item' in entry)
      const outcomes = await store?.(accepted.map(({ item }) => item))
      const last = part.at(-1)
      if (last !== undefined && store !== undefined) {
        imported = `the lines before line ${last.line + 1} were imported`
      }
      result.add(part, outcomes)
      progress.update(result.counts.read, bytesRead(), bytes)
    }
  } catch (cause) {
    const reason = inWords(cause)
    if (isDomainError(cause)) {
      // The store may have kept the last part, or some of it, although it failed.
      throw new CommandError(`${reason} (what is stored stays: run the import again)`)
    }
    throw new CommandError(`${reason} (${imported})`)
  }
}

interface Ending {
  readonly rejectsPath: string
  readonly seconds: number
  readonly isInterrupted: boolean
}

/** @throws CommandError if the import was interrupted */
async function report(
  result: ImportResult,
  { dryRun, json }: Options,
  { rejectsPath, seconds, isInterrupted }: Ending,
): Promise<void> {
  const { counts } = result
  const hasRejects = counts.rejected > 0
  const facts = {
    ...counts,
    rejects: hasRejects ? rejectsPath : null,
    seconds,
    interrupted: isInterrupted,
  }
  const words = dryRun ? result.describeJudged() : result.describeImported(seconds)
  await print({ json }, facts, words)

  if (isInterrupted) {
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
 * How many plants are handed to the store at once. It makes some transactions of them. A
 * transaction takes up to a few tenths of a second, in which nothing else can write to a
 * store in a file.
 */
const partPlants = 10_000
const partBytesMax = 16 * 1024 * 1024

/** Yields parts of the lines. An interruption ends them with the lines read so far. */
export async function* inParts<Item>(
  pieces: AsyncIterable<readonly Entry<Item>[]>,
  signal: AbortSignal,
): AsyncGenerator<readonly Entry<Item>[]> {
  let part: Entry<Item>[] = []
  let bytes = 0
  try {
    for await (const entries of pieces) {
      for (const entry of entries) {
        part.push(entry)
        bytes += entry.raw.length
        if (part.length < partPlants && bytes < partBytesMax) {
          continue
        }
        yield part
        part = []
        bytes = 0
      }
    }
  } catch (error) {
    if (!signal.aborted) {
      throw error
    }
  }
  yield part
}
