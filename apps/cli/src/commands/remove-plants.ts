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

const noneRead = { read: 0, removed: 0, missing: 0 }
type Counts = typeof noneRead

/** Removals that are sent at the same time share a commit. */
const removalsMax = 1_000

async function runRemove(
  from: string,
  options: ReturnType<typeof removePlants.opts>,
): Promise<void> {
  const { dryRun = false, announce, json } = options
  using interruption = new Interruption()
  const { signal } = interruption
  const lines = await openLines(from, idReading, options, signal)
  await using opened = new AsyncDisposableStack()
  const removeOne = await openRemoval({ dryRun, announce }, opened)
  const startedMs = performance.now()
  const counts = { ...noneRead }
  try {
    for await (const part of lines.parts) {
      await removePart(part, removeOne, counts)
    }
  } catch (cause) {
    const before = `${counted(counts.removed, 'plant')} removed before`
    const rest = dryRun ? 'nothing was removed' : before
    throw new CommandError(`${messageOf(cause)} (${rest})`)
  }

  const seconds = (performance.now() - startedMs) / 1000
  const isInterrupted = signal.aborted
  const result = { ...counts, dryRun, seconds, interrupted: isInterrupted }
  let words = summarize(counts, dryRun, seconds)
  if (counts.read === 0) {
    words += `: ${noneIn(from)}`
  }
  await print({ json }, result, words)
  if (isInterrupted) {
    throw new CommandError('interrupted', exitCodes.interrupted)
  }
}

/** Resolves to whether the plant was stored. */
type RemoveOne = (id: PlantId) => Promise<boolean>

async function openRemoval(
  { dryRun, announce }: { dryRun: boolean; announce: boolean },
  opened: AsyncDisposableStack,
): Promise<RemoveOne> {
  if (dryRun) {
    const { plants } = opened.use(await readStore())
    return async id => (await plants.find(id)) !== undefined
  }
  // PostgreSQL may wait for another program's lock.
  const { plants } = opened.use(await changeStore({ timeoutMs: 30_000 }))
  const repository = announce ? plants : plants.unannounced
  return id => repository.remove(id)
}

/**
 * @throws Error of the first line without an id, after it has removed the plants before
 */
async function removePart(
  part: readonly Entry<PlantId>[],
  removeOne: RemoveOne,
  counts: Counts,
): Promise<void> {
  const fault = part.find(entry => 'reason' in entry)
  const before = fault === undefined ? part : part.slice(0, part.indexOf(fault))
  const ids = before.flatMap(entry => ('item' in entry ? [entry.item] : []))
  for (let from = 0; from < ids.length; from += removalsMax) {
    const idsTogether = ids.slice(from, from + removalsMax)
    const outcomes = await Promise.all(idsTogether.map(removeOne))
    const removed = outcomes.filter(wasStored => wasStored).length
    counts.read += idsTogether.length
    counts.removed += removed
    counts.missing += idsTogether.length - removed
  }
  if (fault !== undefined) {
    throw new Error(`line ${fault.line}: ${fault.reason}`)
  }
}

function summarize(
  { removed, missing }: Counts,
  dryRun: boolean,
  seconds: number,
): string {
  const missingInWords =
    missing > 0 ? `, ${grouped(missing)} not stored in ${storageName(storeUrl())}` : ''
  if (dryRun) {
    return `${counted(removed, 'stored plant')}${missingInWords}; nothing was removed`
  }
  const speed = `${duration(seconds)} (${rate(removed, seconds)})`
  return `${counted(removed, 'plant')} removed in ${speed}${missingInWords}`
}
