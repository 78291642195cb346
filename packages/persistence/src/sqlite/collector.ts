import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import type { Change } from '../repositories/statements.ts'

/** A transaction with this many bulk changes takes no further batch of them: a page that many touch is written once. */
const bulkRowsMax = 8_000
/** After a single change, transactions take only one bulk batch each for this time: others may wait for them. */
const inUseMs = 1_000

/** The two queues of a thread to the writer. Single changes overtake bulk ones, and wait for few of them. */
export type WriterQueue = 'single' | 'bulk'

/** The batches of one transaction. */
export interface Collected {
  /** Returns the next batch, which may have arrived meanwhile. */
  next(): readonly Change[] | undefined
  /** Whose batches were taken so far, in the same order, with the number of changes. */
  readonly taken: readonly { readonly port: MessagePort; readonly changes: number }[]
  /** Whether there were single and bulk changes within the last second. */
  readonly isShared: boolean
}

/**
 * Returns a function that collects the batches of one transaction: the first one, those that wait in the ports, and
 * those that arrive while its statements run. What arrives during COMMIT waits for the next transaction.
 *
 * @param singleRowsMax a transaction with this many single changes takes no further batch of them
 */
export function createCollector(
  ports: ReadonlyMap<MessagePort, WriterQueue>,
  singleRowsMax: number,
): (port: MessagePort, changes: readonly Change[]) => Collected {
  const lastMs = { single: Number.NEGATIVE_INFINITY, bulk: Number.NEGATIVE_INFINITY }
  const isInUse = (queue: WriterQueue) => performance.now() - lastMs[queue] <= inUseMs

  return (first, changes) => {
    const taken: { port: MessagePort; changes: number }[] = []
    const waiting: (readonly Change[])[] = []
    const rows = { single: 0, bulk: 0 }
    const take = (port: MessagePort, changes: readonly Change[]) => {
      const queue = ports.get(port) as WriterQueue
      rows[queue] += changes.length
      lastMs[queue] = performance.now()
      taken.push({ port, changes: changes.length })
      waiting.push(changes)
      return true
    }
    const takeFrom = (wanted: WriterQueue) => {
      for (const [port, queue] of ports) {
        const received = queue === wanted ? receiveMessageOnPort(port) : undefined
        if (received !== undefined) return take(port, received.message)
      }
      return false
    }
    const takeArrived = () =>
      (rows.single < singleRowsMax && takeFrom('single')) ||
      ((rows.bulk === 0 || (rows.bulk < bulkRowsMax && !isInUse('single'))) && takeFrom('bulk'))

    // Taken now: if the transaction cannot begin, all that waited for it share that outcome too.
    take(first, changes)
    while (takeArrived()) {}
    return {
      taken,
      isShared: isInUse('single') && isInUse('bulk'),
      next() {
        if (waiting.length === 0) takeArrived()
        return waiting.shift()
      },
    }
  }
}
