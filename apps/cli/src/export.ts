import { once } from 'node:events'
import type { PlantSnapshot } from '@plant-store/persistence'
import { openSnapshot } from '@plant-store/persistence'
import { csvHeader, writeCsv } from './csv.ts'
import type { FormatName } from './import.ts'
import { writeNdjson } from './ndjson.ts'
import { counted, type Output, print } from './output.ts'
import { refuseStore, writeFile } from './output-file.ts'
import { duration, type Progress, showProgress } from './progress.ts'

export interface ExportRequest {
  /** A file, or `-` for the standard output. */
  readonly to: string
  readonly format: FormatName
  readonly force: boolean
}

export async function exportPlants(
  url: string,
  { to, format, force }: ExportRequest,
  output: Output,
  signal: AbortSignal,
): Promise<void> {
  if (to !== '-') refuseStore(to, url)
  await using snapshot = await openSnapshot(url)
  const startedMs = performance.now()
  {
    // A bar between the lines of what a terminal shows would make both unreadable.
    const isShown = !output.json && !(to === '-' && process.stdout.isTTY)
    using progress = await showProgress({ isShown, total: snapshot.count, unit: 'plants' })
    const pieces = write(snapshot, format, progress, signal)
    if (to === '-') await writeToStdout(pieces)
    else await writeFile(to, { force }, pieces)
  }
  const seconds = (performance.now() - startedMs) / 1000
  const { count, tokens } = snapshot
  const rest =
    tokens === 0 ? '' : `; ${counted(tokens, 'access token')} not in it: see plant-store token export`
  print(
    output,
    { exported: count, withoutTokens: tokens, format, file: to === '-' ? null : to, seconds },
    `${counted(count, 'plant')} exported in ${duration(seconds)}${rest}`,
  )
}

async function* write(
  snapshot: PlantSnapshot,
  format: FormatName,
  progress: Progress,
  signal: AbortSignal,
): AsyncGenerator<string> {
  if (format === 'csv') yield csvHeader
  let count = 0
  for await (const plants of snapshot.plants()) {
    signal.throwIfAborted()
    yield format === 'csv' ? writeCsv(plants) : writeNdjson(plants)
    count += plants.length
    progress.update(count, count)
  }
}

async function writeToStdout(pieces: AsyncIterable<string>): Promise<void> {
  for await (const piece of pieces) {
    if (!process.stdout.write(piece)) await once(process.stdout, 'drain')
  }
}
