import type { Entry } from '../formats/lines.ts'

/**
 * Plants in one transaction. It takes a few tenths of a second, in which nothing else can write to a store in a file.
 */
const batchPlants = 20_000
const batchBytesMax = 16 * 1024 * 1024

/** Yields batches of lines. An interruption ends them with the lines read so far. */
export async function* inBatches(
  pieces: AsyncIterable<readonly Entry[]>,
  signal: AbortSignal,
): AsyncGenerator<readonly Entry[]> {
  let batch: Entry[] = []
  let bytes = 0
  try {
    for await (const entries of pieces) {
      for (const entry of entries) {
        batch.push(entry)
        bytes += entry.raw.length
        if (batch.length < batchPlants && bytes < batchBytesMax) continue
        yield batch
        batch = []
        bytes = 0
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
  yield batch
}
