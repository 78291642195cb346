import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import type { Change } from '../group-commit.ts'
import type { ChangeStatement } from '../shared-statements.ts'
import type { Connection } from './connection.ts'
import { statements } from './statements.ts'

/**
 * Makes the changes of a batch in one transaction and one round trip, one statement for each kind of change, and
 * resolves to the affected rows of each. If it rejects, the changes may have been made, unless {@link wasRolledBack}.
 */
export function runTransaction(client: Connection, batch: readonly Change[]): Promise<readonly number[]> {
  return durably(client, async () => {
    const affectedRows = new Array<number>(batch.length).fill(0)
    const groups = groupChanges(batch)
    const queries = groups.map(({ statement, indexes }) => ({
      name: statement,
      text: statements.change[statement],
      values: columnsOf(indexes.map(index => batch[index] as Change)),
      rowMode: 'array' as const,
    }))

    const results = await transact<[Key]>(client, queries)
    for (const [number, { indexes }] of groups.entries()) {
      const keys = new Set(results[number]?.map(([key]) => key))
      for (const index of indexes) if (keys.has(batch[index]?.[1] as Key)) affectedRows[index] = 1
    }
    return affectedRows
  })
}

/** @throws Error if the server was told to stop waiting for its standby, and reported the commit all the same */
export async function durably<Result>(client: pg.Client, work: () => Promise<Result>): Promise<Result> {
  let warned = false
  const notice = ({ code }: { code?: string | undefined }) => {
    if (code === warning) warned = true
  }
  client.on('notice', notice)
  try {
    const result = await work()
    if (warned) throw new Error('the server did not wait for its standby')
    return result
  } finally {
    client.off('notice', notice)
  }
}

const warning = '01000'

/**
 * Runs queries in one transaction and one round trip, and resolves to the rows of each. Rejects like `runTransaction`.
 */
export async function transact<Row>(
  client: Connection,
  queries: readonly pg.QueryConfig[],
): Promise<readonly Row[][]> {
  if (client.isPooled) {
    // One at a time: a pooler with few connections may give this one away between two transactions.
    const turn = client.lastTurn.then(() =>
      send<Row>([client.begin(), ...queries.map(({ name, ...query }) => query), 'commit'], client),
    )
    client.lastTurn = turn.catch(() => {})
    return (await turn).slice(1, -1)
  }
  // A single statement is a transaction.
  if (queries.length === 1) return send(queries, client)
  return (await send<Row>([client.begin(), ...queries, 'commit'], client)).slice(1, -1)
}

async function send<Row>(
  queries: readonly (string | pg.QueryConfig)[],
  client: Connection,
): Promise<readonly Row[][]> {
  const sent = queries.map(query => client.query(query))
  // Waits for all, so that none is in progress when it throws.
  await Promise.allSettled(sent)
  return (await Promise.all(sent)).map(({ rows }) => rows)
}

const attemptsMax = 10

/** Retries a transaction that the server rolled back, until it succeeds or the time is over. */
export async function retrying<Result>(timeoutMs: number, attempt: () => Promise<Result>): Promise<Result> {
  const startedMs = performance.now()
  for (let attempts = 1; ; attempts++) {
    try {
      return await attempt()
    } catch (error) {
      const isLate = performance.now() - startedMs > timeoutMs
      if (!wasRolledBack(error) || isLate || attempts === attemptsMax) throw error
      await sleep(Math.random() * 2 ** attempts)
    }
  }
}

/** Returns whether the server kept nothing of the transaction, so that a retry may succeed. */
export function wasRolledBack(error: unknown): boolean {
  const { code } = error as { code?: unknown }
  return code === serializationFailure || code === deadlock
}

const serializationFailure = '40001'
const deadlock = '40P01'

type Key = bigint | string

interface Group {
  readonly statement: ChangeStatement
  /** The positions of its changes in the batch. */
  readonly indexes: readonly number[]
}

/**
 * Groups changes for one statement each. Changes of one plant, and those with a name, stay in order, in different
 * groups. A change that begins or ends a silence is a group of its own. Rows within a group are sorted by key, so that
 * processes lock rows in the same order and cannot deadlock.
 */
export function groupChanges(batch: readonly Change[]): readonly Group[] {
  const turns = new Map<unknown, number>()
  const rounds: Map<ChangeStatement, number[]>[] = []
  let first = 0
  for (const [index, [statement, key]] of batch.entries()) {
    if (key === undefined) {
      rounds.push(new Map([[statement, [index]]]))
      first = rounds.length
      turns.clear()
      continue
    }
    const subject = typeof key === 'bigint' ? key : 'named'
    const turn = turns.get(subject) ?? first
    turns.set(subject, turn + 1)
    rounds[turn] ??= new Map()
    const group = rounds[turn].get(statement)
    if (group === undefined) rounds[turn].set(statement, [index])
    else group.push(index)
  }
  const keyOf = (index: number) => batch[index]?.[1] as Key
  return rounds.flatMap(round =>
    [...round].map(([statement, indexes]) => ({
      statement,
      indexes: indexes.sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1)),
    })),
  )
}

function columnsOf(changes: readonly Change[]): unknown[][] {
  const width = (changes[0]?.length ?? 1) - 1
  return Array.from({ length: width }, (_, column) => changes.map(change => change[column + 1]))
}
