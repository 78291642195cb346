import type { Plant } from '@plant-store/domain'
import type { Entry } from '../formats/lines.ts'

/** Plants that share a transaction: it takes a few tenths of a second, in which nobody else can write a store in a file. */
const batchPlants = 20_000
const batchTextMax = 16 * 1024 * 1024

/** An interruption ends them with what was read before it. */
export async function* inBatches(
  pieces: AsyncIterable<readonly Entry<Plant>[]>,
  signal: AbortSignal,
): AsyncGenerator<readonly Entry<Plant>[]> {
  let batch: Entry<Plant>[] = []
  let textLength = 0
  try {
    for await (const entries of pieces) {
      for (const entry of entries) {
        batch.push(entry)
        textLength += entry.raw.length
        if (batch.length < batchPlants && textLength < batchTextMax) continue
        yield batch
        batch = []
        textLength = 0
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
  yield batch
}
