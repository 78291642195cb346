import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import type { Change } from '../group-commit.ts'
import type { WriterLane } from './writer.ts'

/** Bulk changes in a transaction, for which a single change may wait. */
const bulkRowsMax = 500
/** The same without single changes: a page that many bulk changes touch is then written once. */
const quietBulkRowsMax = 8_000
const quietAfterMs = 1_000

/** The batches of one transaction. */
export interface Collected {
  /** In order. Going through them takes what has arrived meanwhile too. */
  readonly batches: Iterable<readonly Change[]>
  /** What was taken so far, in the same order. */
  readonly taken: readonly { readonly port: MessagePort; readonly changes: number }[]
}

/**
 * Returns a function that collects the batches of one transaction: the first one, those that wait in the ports, and
 * those that arrive while their statements run. What arrives during COMMIT waits for the next transaction.
 *
 * @param singleRowsMax a transaction with this many single changes takes no further batch of them
 */
export function createCollector(
  ports: ReadonlyMap<MessagePort, WriterLane>,
  singleRowsMax: number,
): (first: MessagePort, batch: readonly Change[]) => Collected {
  let lastSingleMs = Number.NEGATIVE_INFINITY

  return (first, batch) => {
    const taken: { readonly port: MessagePort; readonly changes: number }[] = []
    const rows = { single: 0, bulk: 0 }
    const take = (port: MessagePort, changes: readonly Change[]) => {
      const lane = ports.get(port) as WriterLane
      rows[lane] += changes.length
      if (lane === 'single') lastSingleMs = performance.now()
      taken.push({ port, changes: changes.length })
      return changes
    }
    const nextOf = (wanted: WriterLane) => {
      for (const [port, lane] of ports) {
        const received = lane === wanted ? receiveMessageOnPort(port) : undefined
        if (received !== undefined) return take(port, received.message)
      }
      return undefined
    }
    function* arrived(): Generator<readonly Change[]> {
      for (let next: readonly Change[] | undefined; ; yield next) {
        const bulkMax = performance.now() - lastSingleMs > quietAfterMs ? quietBulkRowsMax : bulkRowsMax
        next = rows.single < singleRowsMax ? nextOf('single') : undefined
        if (rows.bulk < bulkMax) next ??= nextOf('bulk')
        if (next === undefined) return
      }
    }
    // Taken now: if the transaction cannot begin, all that waited for it share that outcome too.
    const waiting = [take(first, batch), ...arrived()]
    function* batches() {
      yield* waiting
      yield* arrived()
    }
    return { batches: batches(), taken }
  }
}
