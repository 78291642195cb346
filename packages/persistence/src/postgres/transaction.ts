import type pg from 'pg'
import type { Change } from '../group-commit.ts'
import type { ChangeStatement } from '../shared-statements.ts'
import { type Connection, transact } from './connection.ts'
import { statements } from './statements.ts'

/**
 * Makes the changes of a batch in one transaction and one round trip, with one statement for all changes of a kind.
 * Resolves to the affected rows of each.
 *
 * @throws whatever went wrong; unless `wasRolledBack` it can't be known whether the changes were made
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
      const keys = new Set(results[number]?.rows.map(([key]) => key))
      for (const index of indexes) if (keys.has(batch[index]?.[1] as Key)) affectedRows[index] = 1
    }
    return affectedRows
  })
}

/** @throws Error when the server, told to stop waiting for its standby, warned of it and said that the commit succeeded */
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

type Key = bigint | string

interface Group {
  readonly statement: ChangeStatement
  /** Of its changes in the batch. */
  readonly indexes: readonly number[]
}

/**
 * Groups changes so that changes of one plant, and those of any tokens, are in different groups in the order given.
 * Within a group the rows are in the order of their keys: processes that lock the same rows then do so in the same
 * order, and none waits for another that waits for it.
 */
export function groupChanges(batch: readonly Change[]): readonly Group[] {
  const turns = new Map<unknown, number>()
  const rounds: Map<ChangeStatement, number[]>[] = []
  for (const [index, [statement, key]] of batch.entries()) {
    const subject = typeof key === 'bigint' ? key : 'tokens'
    const turn = turns.get(subject) ?? 0
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
