import { DomainError, isDomainError } from '@plant-store/domain'
import type pg from 'pg'
import { createCommitQueue, type Write } from '../commit-queue.ts'
import { noChange, watchOutages } from '../outage.ts'
import { createRepositories, type StatementRunner } from '../repositories.ts'
import type { Statements } from '../statements.ts'
import type { CommitObserver, StateObserver, Storage } from '../storage.ts'
import type { PostgresLink } from '../storage-link.ts'
import { plantColumns } from '../tables.ts'
import { commit } from './commit.ts'
import { createLane, retrying, transact } from './connection.ts'

/** Reads that may be under way; past it, `store-busy`. */
const readsMax = 10_000

/**
 * One commit is under way at a time, and so changes of one plant take effect in the order they were made in: one that
 * the server takes back, and that is tried again, would be overtaken by the next.
 */
export function joinPostgres(
  { options, statements, limits }: PostgresLink,
  { onCommit = () => {}, onStateChange }: CommitObserver & StateObserver,
): Storage {
  const { timeoutMs } = options
  const writer = createLane(options)
  const readers = Array.from({ length: options.readConnectionsMax }, () => createLane(options))

  const queue = createCommitQueue({
    async commit(writes) {
      const begun = performance.now()
      const attempt = () => writer.use(client => commit(client, writes, statements.write))
      const changed = await retrying(timeoutMs, attempt)
      onCommit({ rows: writes.length, ms: performance.now() - begun })
      return changed
    },
    commitsAtOnce: 1,
    limits,
  })
  const write = (change: Write) => answering(timeoutMs, queue.write(change)).catch(outages.failed)

  const leastBusy = () => readers.reduce((least, lane) => (lane.inFlight < least.inFlight ? lane : least))

  const read: StatementRunner['read'] = async <Row extends object>(
    name: keyof Statements['read'],
    ...values: unknown[]
  ) => {
    const reader = leastBusy()
    if (reader.inFlight >= readsMax / readers.length) {
      throw new DomainError('store-busy', 'too many reads are waiting')
    }
    const query = { name, text: statements.read[name], values }
    const attempt = () => reader.use(async client => (await transact<Row>(client, [query]))[0]?.rows ?? [])
    return answering(timeoutMs, retrying(timeoutMs, attempt)).catch(outages.failed)
  }

  const readPage: StatementRunner['readPage'] = (name, textBytesMax, ...values) =>
    read(name, ...values, textBytesMax)

  // What requests do, to no rows: it needs the same rights, and a server that takes writes.
  const check = async () => {
    const changes = changesOfNothing(statements.write)
    await answering(
      timeoutMs,
      leastBusy().use(client => transact(client, changes)),
    ).catch(outages.failed)
  }
  const checkAll = async () => {
    await check()
    await write(noChange)
  }
  const outages = watchOutages(checkAll, onStateChange)

  return {
    ...createRepositories({ write, read, readPage }),
    check,
    waiting: queue.waiting,
    async [Symbol.asyncDispose]() {
      outages.end()
      await queue.drained()
      await Promise.all([writer, ...readers].map(lane => lane.close()))
    },
  }
}

function changesOfNothing({ savePlant, removePlant, markTokenUsed }: Statements['write']): pg.QueryConfig[] {
  return [
    { name: 'savePlant', text: savePlant, values: plantColumns.map(() => []) },
    { name: 'removePlant', text: removePlant, values: [[]] },
    { name: 'markTokenUsed', text: markTokenUsed, values: [[], []] },
  ]
}

/**
 * Bounds how long anybody waits. What takes longer goes on, within limits of its own: of a change it is then not known
 * whether it was kept.
 *
 * @throws DomainError `store-unavailable` for whatever isn't a DomainError already
 */
function answering<Result>(timeoutMs: number, work: Promise<Result>): Promise<Result> {
  const { promise, resolve, reject } = Promise.withResolvers<Result>()
  const timer = setTimeout(
    () => reject(new DomainError('store-unavailable', 'the store did not answer in time')),
    timeoutMs,
  )
  work
    .then(resolve, cause => {
      reject(
        isDomainError(cause)
          ? cause
          : new DomainError('store-unavailable', 'the store can not be used', { cause }),
      )
    })
    .finally(() => clearTimeout(timer))
  return promise
}
