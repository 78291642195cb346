import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import type { Change } from '../group-commit.ts'
import type { WriterLane } from './writer.ts'

/** A transaction with this many bulk changes takes no further batch of them: a page that many touch is written once. */
const bulkRowsMax = 8_000
/** After a single change, transactions take only one bulk batch each for this time: others may wait for them. */
const inUseMs = 1_000

/** The batches of one transaction. */
export interface Collected {
  /** In order. Going through them takes what has arrived meanwhile too. */
  readonly batches: Iterable<readonly Change[]>
  /** What was taken so far, in the same order. */
  readonly taken: readonly { readonly port: MessagePort; readonly changes: number }[]
  /** Whether there were single and bulk changes within the last second. */
  readonly isShared: boolean
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
  const lastMs = { single: Number.NEGATIVE_INFINITY, bulk: Number.NEGATIVE_INFINITY }
  const isInUse = (lane: WriterLane) => performance.now() - lastMs[lane] <= inUseMs

  const take = ({ taken, rows }: Transaction, port: MessagePort, changes: readonly Change[]) => {
    const lane = ports.get(port) as WriterLane
    rows[lane] += changes.length
    lastMs[lane] = performance.now()
    taken.push({ port, changes: changes.length })
    return changes
  }
  const nextOf = (transaction: Transaction, wanted: WriterLane) => {
    for (const [port, lane] of ports) {
      const received = lane === wanted ? receiveMessageOnPort(port) : undefined
      if (received !== undefined) return take(transaction, port, received.message)
    }
    return undefined
  }
  // A generator function in the function below would be one for each transaction. V8 keeps memory for each of them
  // until a full collection, and spent 2 % of the creates on that.
  function* arrived(transaction: Transaction): Generator<readonly Change[]> {
    const { rows } = transaction
    for (let next: readonly Change[] | undefined; ; yield next) {
      next = rows.single < singleRowsMax ? nextOf(transaction, 'single') : undefined
      if (rows.bulk === 0 || (rows.bulk < bulkRowsMax && !isInUse('single')))
        next ??= nextOf(transaction, 'bulk')
      if (next === undefined) return
    }
  }
  function* waitingAndArrived(waiting: readonly (readonly Change[])[], transaction: Transaction) {
    yield* waiting
    yield* arrived(transaction)
  }

  return (first, batch) => {
    const transaction: Transaction = { taken: [], rows: { single: 0, bulk: 0 } }
    // Taken now: if the transaction cannot begin, all that waited for it share that outcome too.
    const waiting = [take(transaction, first, batch), ...arrived(transaction)]
    const isShared = isInUse('single') && isInUse('bulk')
    return { batches: waitingAndArrived(waiting, transaction), taken: transaction.taken, isShared }
  }
}

interface Transaction {
  readonly taken: { readonly port: MessagePort; readonly changes: number }[]
  readonly rows: Record<WriterLane, number>
}
