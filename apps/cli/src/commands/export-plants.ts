import { Command, Option } from '@commander-js/extra-typings'
import { openSnapshot, type PlantSnapshot } from '@plant-store/persistence'
import { forceOption, refuseStore, writeOutput } from '../files/output-file.ts'
import { type FormatName, formatNames, formats } from '../formats/format.ts'
import { storeUrl } from '../store-in-environment.ts'
import { onInterrupt } from '../terminal/interrupt.ts'
import { counted, duration, print } from '../terminal/output.ts'
import { type Progress, showProgress } from '../terminal/progress.ts'

export const exportPlants = new Command('export')
  .description('Write all plants in the order of their ids, as they are at this moment.')
  .argument('[file]', 'to write (by default the standard output)', '-')
  .addOption(new Option('--format <format>', 'to write').choices(formatNames).default('ndjson'))
  .addOption(forceOption)
  .option('--json', 'print JSON; on the standard error if the plants go to the standard output')
  .addHelpText(
    'after',
    `
Changes that servers make meanwhile are not included. Importing the file into an empty store gives the same plants, and
exporting those gives the same bytes, from a file as from PostgreSQL. Access tokens are not included: move them with
token export and token import. While an export runs, the log of a file cannot shrink and PostgreSQL cannot clean up: do
not leave it waiting.`,
  )
  .action(async (file, { format, force, json }) => {
    const signal = onInterrupt()
    const url = storeUrl()
    if (file !== '-') refuseStore(file, url)
    await using snapshot = await openSnapshot(url)
    const startedMs = performance.now()
    {
      // A bar between the lines that a terminal shows would make both unreadable.
      using progress = await showProgress('plant', !json && !(file === '-' && process.stdout.isTTY))
      await writeOutput(file, { force }, write(snapshot, format, progress, signal))
    }
    const seconds = (performance.now() - startedMs) / 1000
    const { count, tokens } = snapshot
    const rest =
      tokens === 0 ? '' : `; ${counted(tokens, 'access token')} not in it: see plant-store token export`
    print(
      { json, file },
      { exported: count, withoutTokens: tokens, format, file: file === '-' ? null : file, seconds },
      `${counted(count, 'plant')} exported in ${duration(seconds)}${rest}`,
    )
  })

async function* write(
  snapshot: PlantSnapshot,
  format: FormatName,
  progress: Progress,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const { header, write } = formats[format]
  if (header !== '') yield header
  let count = 0
  for await (const plants of snapshot.plants()) {
    signal.throwIfAborted()
    yield write(plants)
    count += plants.length
    progress.update(count, count, snapshot.count)
  }
}
