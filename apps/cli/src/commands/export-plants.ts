import { Command, Option } from '@commander-js/extra-typings'
import { openReader, openSalvage } from '@plant-store/persistence'
import {
  CommandError,
  exitCodes,
  onInterrupt,
  throwWithAdvice,
} from '../command-error.ts'
import { forceOption, refuseStore, writeOutput } from '../files/output-file.ts'
import { formatNames, formats } from '../formats/formats.ts'
import { existingStoreUrl } from '../store-in-environment.ts'
import { counted, countedAll, duration, print, showProgress } from '../terminal.ts'
import { isSelected, searchedText } from './plant-filter.ts'

export const exportPlants = new Command('export')
  .description('Write all plants, or selected ones, in order of id, as one snapshot.')
  .argument('[file]', 'to write (by default standard output)', '-')
  .addOption(
    new Option('--format <format>', 'to write').choices(formatNames).default('ndjson'),
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
Changes during the export are not included, and neither is anything but plants, such as tokens: a backup has them.
Importing the file into an empty store restores the same plants, and exporting that store writes the same bytes, on
SQLite and PostgreSQL alike. While an export runs, the WAL of a file cannot shrink and PostgreSQL cannot vacuum: do not
leave it waiting.

CSV has a name such as =1+1 as it is: in a spreadsheet, import the columns as text.

--damaged goes on after damaged pages. The exit code is 3 if any plant could not be read. Import what it wrote into a new
store.`,
  )
  .action(async (file, options) => {
    const exporting = runExport(file, options)
    await (options.damaged ? exporting : exporting.catch(throwWithAdvice))
  })

type Options = ReturnType<typeof exportPlants.opts>

async function runExport(
  file: string,
  { damaged, format, force, json, tag, nameContains }: Options,
): Promise<void> {
  const signal = onInterrupt()
  const url = existingStoreUrl()
  if (file !== '-') {
    refuseStore(file, url)
  }
  await using opened = new AsyncDisposableStack()
  const source = await openSource(url, damaged, opened)
  const { total = 0, others } = source
  const startedMs = performance.now()
  const { header, write } = formats[format]
  let exported = 0
  let read = 0
  {
    // A bar would mix with lines on the same terminal.
    using progress = await showProgress(
      'plant',
      !json && !(file === '-' && process.stdout.isTTY),
    )
    async function* pieces() {
      if (header !== '') {
        yield header
      }
      for await (const plants of source.plants) {
        signal.throwIfAborted()
        const selected = plants.filter(plant => isSelected(plant, { tag, nameContains }))
        yield write(selected)
        exported += selected.length
        read += plants.length
        progress.update(exported, read, total)
      }
    }
    await writeOutput(file, force ?? false, pieces())
  }

  const seconds = (performance.now() - startedMs) / 1000
  const words = `${counted(exported, 'plant')} exported in ${duration(seconds)}`
  const printResult = async (more: object, rest: string) => {
    const result = {
      exported,
      ...more,
      seconds,
      format,
      file: file === '-' ? null : file,
    }
    await print({ json, file }, result, `${words}${rest}`)
  }
  const left = Object.fromEntries(
    Object.entries(others).filter(([, count]) => count !== 0),
  )
  const rest =
    Object.keys(left).length === 0
      ? ''
      : `; ${countedAll(left)} not included: a backup has them`
  if (source.unread === undefined) {
    return await printResult(without(others), rest)
  }
  const unread = source.unread() ?? null
  if (unread === 0 || json) {
    await printResult({ unread, ...without(others) }, `; none missing${rest}`)
  }
  if (unread === 0) {
    return
  }
  const missing =
    unread === null ? 'an unknown number of others' : counted(unread, 'other')
  throw new CommandError(
    `${words}; ${missing} could not be read${rest}`,
    exitCodes.incomplete,
  )
}

/** Returns the plants of a store, with the counts of its other entities. */
async function openSource(
  url: string,
  damaged: boolean | undefined,
  opened: AsyncDisposableStack,
) {
  if (damaged) {
    const salvage = opened.use(await openSalvage(url))
    const { count: total, all, unread } = salvage.of('plants')
    const { plants: _, ...others } = salvage.counts
    return { plants: all(), total, others, unread }
  }
  const reader = opened.use(await openReader(url))
  const { plants: total, ...others } = await reader.counts()
  return { plants: reader.all('plants'), total, others }
}

/** Returns the counts as JSON has them, such as `withoutTokens`. */
function without(others: Readonly<Record<string, number | undefined>>): object {
  const entries = Object.entries(others).map(([name, count]) => [
    `without${name.charAt(0).toUpperCase()}${name.slice(1)}`,
    count ?? null,
  ])
  return Object.fromEntries(entries)
}
