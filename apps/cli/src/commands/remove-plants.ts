import { Command } from '@commander-js/extra-typings'
import { type PlantId, parsePlantId } from '@plant-store/domain'
import { messageOf, storageName } from '@plant-store/engine'
import { CommandError, exitCodes, Interruption } from '../command-error.ts'
import type { Entry, ItemReading } from '../formats/lines.ts'
import { inputFormatOption, jsonOption } from '../options.ts'
import { print } from '../output.ts'
import { changeStore, readStore, storeUrl } from '../store-in-environment.ts'
import { counted, duration, grouped, rate } from '../words.ts'
import { noneIn, openLines } from './read-lines.ts'

export const removePlants = new Command('remove')
  .description('Remove the plants whose ids are in a file, such as one of export.')
  .argument('<file>', 'to read, plain or gzipped; - for standard input')
  .addOption(inputFormatOption)
  .option('--dry-run', 'count the plants, and remove none')
  .option('--no-announce', 'send no webhooks for these plants')
  .addOption(jsonOption)
  .addHelpText(
    'after',
    `
The file is NDJSON or CSV, as for import. Only the id of each line is used: a plant is removed even if it has changed
since the export. A line without an id ends the command, after the plants of the lines before it were removed. Ids that
are not stored are counted, so the command can be repeated.`,
  )
  .action(runRemove)

const idReading: ItemReading<PlantId> = {
  required: ['id'],
  parse: record => parsePlantId((record as { readonly id?: unknown } | null)?.id),
}

/** Removals that are sent at the same time share a commit. */
const removalsMax = 1_000

async function runRemove(from: string, options: ReturnType<typeof removePlants.opts>) {
  const { dryRun = false, announce, json } = options
  using interruption = new Interruption()
  const { signal } = interruption
  const lines = await openLines(from, idReading, options, signal)
  // PostgreSQL may wait for another program's lock.
  await using store = await (dryRun ? readStore() : changeStore({ timeoutMs: 30_000 }))
  const plants = announce ? store.plants : store.plants.unannounced
  /** Resolves to whether the plant was stored. */
  const removeOne = async (id: PlantId) =>
    dryRun ? (await plants.find(id)) !== undefined : plants.remove(id)

  const startedMs = performance.now()
  let read = 0
  let removed = 0
  try {
    for await (const ids of idsIn(lines.parts)) {
      const outcomes = await Promise.all(ids.map(removeOne))
      read += ids.length
      removed += outcomes.filter(Boolean).length
    }
  } catch (cause) {
    const before = `${counted(removed, 'plant')} removed before`
    const rest = dryRun ? 'nothing was removed' : before
    throw new CommandError(`${messageOf(cause)} (${rest})`)
  }

  const seconds = (performance.now() - startedMs) / 1000
  const missing = read - removed
  const isInterrupted = signal.aborted
  const result = { read, removed, missing, dryRun, seconds, interrupted: isInterrupted }
  const speed = `${duration(seconds)} (${rate(removed, seconds)})`
  let words = dryRun
    ? counted(removed, 'stored plant')
    : `${counted(removed, 'plant')} removed in ${speed}`
  if (missing > 0) {
    words += `, ${grouped(missing)} not stored in ${storageName(storeUrl())}`
  }
  if (dryRun) {
    words += '; nothing was removed'
  }
  if (read === 0) {
    words += `: ${noneIn(from)}`
  }
  await print({ json }, result, words)
  if (isInterrupted) {
    throw new CommandError('interrupted', exitCodes.interrupted)
  }
}

/**
 * Yields the ids that are removed together.
 *
 * @throws Error of the first line without an id, after the ids before it
 */
async function* idsIn(parts: AsyncIterable<readonly Entry<PlantId>[]>) {
  for await (const part of parts) {
    let ids: PlantId[] = []
    for (const entry of part) {
      if ('reason' in entry) {
        yield ids
        throw new Error(`line ${entry.line}: ${entry.reason}`)
      }
      ids.push(entry.item)
      if (ids.length === removalsMax) {
        yield ids
        ids = []
      }
    }
    yield ids
  }
}
