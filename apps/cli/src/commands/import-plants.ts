import { Command, InvalidArgumentError, Option } from '@commander-js/extra-typings'
import { createPlantUseCases, isDomainError, type Plant } from '@plant-store/domain'
import { explain } from '@plant-store/engine'
import { CommandError, exitCodes, onInterrupt } from '../command-error.ts'
import { openInput } from '../files/input-file.ts'
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
import { ImportResult } from './import-result.ts'

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

Plants are stored 10,000 at a time. After an interruption, run the import again: plants already stored are counted as
such, or written again with --replace. --dry-run does not look for ids in the store.`,
  )
  .action(runImport)

function lineLimit(text: string): number {
  const bytes = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (bytes >= 1024 && bytes <= 256 * 1024 * 1024) {
    return bytes
  }
  throw new InvalidArgumentError('It must be a number of bytes from 1024 to 268435456.')
}

async function runImport(
  from: string,
  options: ReturnType<typeof importPlants.opts>,
): Promise<void> {
  const { replace = false, dryRun = false, announce, lineLimit, json } = options
  const rejectsPath =
    options.rejects ?? `${from === '-' ? 'plant-store' : from}.rejects.ndjson`
  const signal = onInterrupt()
  const input = await openInput(from, signal)
  const format = detectFormat(input.beginning, from, options.format)
  const lineEnd = lineEndOf(input.beginning)
  if (isSameFile(from, rejectsPath)) {
    const advice = 'name another file with --rejects'
    throw new CommandError(
      `${rejectsPath} is the file to import: ${advice}`,
      exitCodes.usage,
    )
  }
  refuseStore(rejectsPath, storeUrl())
  using result = new ImportResult(rejectsPath)
  // PostgreSQL may wait for another program's lock.
  await using storage = dryRun ? undefined : await openStore({ timeoutMs: 30_000 })
  const useCases =
    storage &&
    createPlantUseCases({
      plants: announce ? storage.plants : storage.plants.unannounced,
    })
  const add = (plants: readonly Plant[]) =>
    replace ? useCases?.replaceAll(plants) : useCases?.createAll(plants)
  const startedMs = performance.now()
  {
    using progress = await showProgress('plant', !json)
    let kept = 'nothing was imported'
    try {
      for await (const part of inParts(
        formats[format].read(input.chunks, {
          ...plantReading,
          lineBytesMax: lineLimit,
          lineEnd,
        }),
        signal,
      )) {
        // One at a time: while the next lines are parsed, servers can write to a store in a file.
        const outcomes = await add(
          part.flatMap(entry => ('item' in entry ? [entry.item] : [])),
        )
        const last = part.at(-1)
        if (last && !dryRun) {
          kept = `the lines before line ${last.line + 1} were imported`
        }
        result.add(part, outcomes)
        progress.update(result.counts.read, input.bytesRead(), input.bytes)
      }
    } catch (cause) {
      // The store may have kept the last part, or some of it, all the same.
      const rest = isDomainError(cause)
        ? 'what is stored stays: run the import again'
        : kept
      throw new CommandError(`${explain(cause as Error)} (${rest})`)
    }
  }

  const seconds = (performance.now() - startedMs) / 1000
  const { counts } = result
  const rejects = counts.rejected > 0 ? rejectsPath : null
  const all = { ...counts, rejects, seconds, interrupted: signal.aborted }
  await print({ json }, all, result.summary(dryRun ? undefined : seconds))
  if (signal.aborted) {
    throw new CommandError(
      `interrupted: ${dryRun ? 'the rest was not judged' : 'the plants counted above are stored'}`,
      exitCodes.interrupted,
    )
  }
  if (counts.rejected > 0) {
    process.exitCode = exitCodes.incomplete
  }
}

/**
 * Plants in one transaction, or in several if they are long or there are webhooks. Each takes a few tenths of a second, in
 * which nothing else can write to a store in a file.
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
