import { Command, InvalidArgumentError, Option } from '@commander-js/extra-typings'
import type { Plant } from '@plant-store/domain'
import { openReader, openSalvage } from '@plant-store/persistence'
import {
  CommandError,
  exitCodes,
  Interruption,
  throwWithAdvice,
} from '../command-error.ts'
import { refuseStore, writeOutput } from '../files/output-file.ts'
import { formatNames, formats, formatToWrite } from '../formats/formats.ts'
import { forceOption } from '../options.ts'
import { print } from '../output.ts'
import { showProgress } from '../progress.ts'
import { storeUrl } from '../store-in-environment.ts'
import { counted, countedAll, duration } from '../words.ts'

export const exportPlants = new Command('export')
  .description('Write all plants, or selected ones, in order of id, as one snapshot.')
  .argument('[file]', 'to write (by default standard output)', '-')
  .addOption(
    new Option(
      '--format <format>',
      'to write (by default csv for a file whose name ends in .csv, and otherwise ndjson)',
    ).choices(formatNames),
  )
  .addOption(forceOption)
  .option('--tag <tag>', 'only plants with this tag')
  .option(
    '--name-contains <text>',
    'only plants whose name contains the text (A to Z match a to z)',
    searchedText,
  )
  .option('--damaged', 'write every readable plant of a damaged file')
  .option('--json', 'print JSON, on standard error if the plants go to standard output')
  .addHelpText(
    'after',
    `
Changes during the export are not included. Only plants are exported, so make a backup for tokens and webhooks, too.
Importing the file into an empty store restores the same plants, and exporting that store writes the same bytes, on
SQLite and PostgreSQL alike. While an export runs, the WAL of a file cannot shrink and PostgreSQL cannot vacuum: do not
leave it waiting.

CSV has a name such as =1+1 as it is: in a spreadsheet, import the columns as text.

--damaged goes on after damaged pages. The exit code is 3 if any plant could not be read. Import what it wrote into a new
store.`,
  )
  .action(async (file, options) => {
    const running = runExport(file, options)
    await (options.damaged ? running : running.catch(throwWithAdvice))
  })

type Options = ReturnType<typeof exportPlants.opts>

/** Returns whether GET /plants would select the plant. */
function isSelected(plant: Plant, { tag = plant.tag, nameContains }: Options) {
  if (plant.tag !== tag) {
    return false
  }
  return nameContains === undefined || lowerCase(plant.name).includes(nameContains)
}

/** Reads the text to search for, in lower case. */
function searchedText(text: string) {
  if (text === '') {
    throw new InvalidArgumentError('It must have at least one character.')
  }
  return lowerCase(text)
}

/** Both databases change A to Z only. */
function lowerCase(text: string) {
  return text.replaceAll(/[A-Z]/g, letter => letter.toLowerCase())
}

async function runExport(file: string, options: Options) {
  const { damaged, json } = options
  using interruption = new Interruption()
  const url = storeUrl()
  if (file !== '-') {
    refuseStore(file, url)
  }

  await using opened = new AsyncDisposableStack()
  const source = await openSource(url, damaged, opened)
  const startedMs = performance.now()
  const exported = await writePlants(source, file, options, interruption.signal)
  const seconds = (performance.now() - startedMs) / 1000

  const unread = source.unread()
  const others = Object.entries(source.otherCounts)
  const othersInJson = others.map(([plural, count]) => [
    `without${plural.charAt(0).toUpperCase()}${plural.slice(1)}`,
    count ?? null,
  ])
  const result = {
    exported,
    unread,
    ...Object.fromEntries(othersInJson),
    seconds,
    format: formatToWrite(file, options.format),
    file: file === '-' ? null : file,
  }

  const phrases = [`${counted(exported, 'plant')} exported in ${duration(seconds)}`]
  const isComplete = unread === undefined || unread === 0
  if (unread === 0) {
    phrases.push('none missing')
  }
  if (!isComplete) {
    const missing = countedAll({ others: unread ?? undefined })
    phrases.push(`${missing} could not be read`)
  }
  const present = others.filter(([, count]) => count !== 0)
  if (present.length > 0) {
    const words = countedAll(Object.fromEntries(present))
    phrases.push(`${words} not included: a backup has them`)
  }
  const words = phrases.join('; ')
  // People read in the error what is missing.
  if (isComplete || json) {
    await print({ json, file }, result, words)
  }
  if (!isComplete) {
    throw new CommandError(words, exitCodes.incomplete)
  }
}

type Source = Awaited<ReturnType<typeof openSource>>

/**
 * Opens what is exported. `unread` returns how many plants of a damaged store could not
 * be read, `null` if that is unknown, and `undefined` without `--damaged`.
 */
async function openSource(
  url: string,
  isDamaged: boolean | undefined,
  opened: AsyncDisposableStack,
) {
  if (isDamaged) {
    const salvage = opened.use(await openSalvage(url))
    const { count: total, all, unread } = salvage.of('plants')
    const { plants: _, ...otherCounts } = salvage.counts
    return { plants: all(), total, otherCounts, unread: () => unread() ?? null }
  }

  const reader = opened.use(await openReader(url))
  const { plants: total, ...otherCounts } = await reader.counts()
  return { plants: reader.all('plants'), total, otherCounts, unread: () => undefined }
}

/** Resolves to how many plants it wrote. */
async function writePlants(
  { plants: parts, total = 0 }: Source,
  file: string,
  options: Options,
  signal: AbortSignal,
): Promise<number> {
  const { header, write } = formats[formatToWrite(file, options.format)]
  let exported = 0
  let read = 0
  // A bar would mix with lines on the same terminal.
  const isTerminalInUse = file === '-' && process.stdout.isTTY
  using progress = await showProgress('plant', !options.json && !isTerminalInUse)

  async function* pieces() {
    yield header
    for await (const plants of parts) {
      signal.throwIfAborted()
      const selected = plants.filter(plant => isSelected(plant, options))
      yield write(selected)
      exported += selected.length
      read += plants.length
      progress.update(exported, read, total)
    }
  }

  await writeOutput(file, options.force ?? false, pieces())
  return exported
}
