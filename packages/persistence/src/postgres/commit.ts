import type pg from 'pg'
import type { Write } from '../commit-queue.ts'
import type { Statements, WriteStatement } from '../statements.ts'
import { type Connection, transact } from './connection.ts'

/**
 * Makes changes in one transaction and one round trip, with one statement for all changes of a kind.
 *
 * @param statements that each change any number of rows and return their keys
 * @returns how many rows each changed
 * @throws whatever went wrong; unless `wasRolledBack` it can't be known whether the changes were kept
 */
export async function commit(
  client: Connection,
  writes: readonly Write[],
  statements: Statements['write'],
): Promise<readonly number[]> {
  return durably(client, () => run(client, writes, statements))
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

async function run(
  client: Connection,
  writes: readonly Write[],
  statements: Statements['write'],
): Promise<readonly number[]> {
  const changed = new Array<number>(writes.length).fill(0)
  const groups = groupWrites(writes)
  const queries = groups.map(({ statement, indexes }) => ({
    name: statement,
    text: statements[statement],
    values: columnsOf(indexes.map(index => writes[index] as Write)),
    rowMode: 'array' as const,
  }))

  const results = await transact<[Key]>(client, queries)
  for (const [number, { indexes }] of groups.entries()) {
    const keys = new Set(results[number]?.rows.map(([key]) => key))
    for (const index of indexes) if (keys.has(writes[index]?.[1] as Key)) changed[index] = 1
  }
  return changed
}

type Key = bigint | string

interface Group {
  readonly statement: WriteStatement
  /** Of the writes that it makes. */
  readonly indexes: readonly number[]
}

/**
 * Groups changes so that changes of one plant, and those of any tokens, are in different groups in the order given.
 * Within a group the rows are in the order of their keys: processes that lock the same rows then do so in the same
 * order, and none waits for another that waits for it.
 */
export function groupWrites(writes: readonly Write[]): readonly Group[] {
  const turns = new Map<unknown, number>()
  const rounds: Map<WriteStatement, number[]>[] = []
  for (const [index, [statement, key]] of writes.entries()) {
    const subject = typeof key === 'bigint' ? key : 'tokens'
    const turn = turns.get(subject) ?? 0
    turns.set(subject, turn + 1)
    rounds[turn] ??= new Map()
    const group = rounds[turn].get(statement)
    if (group === undefined) rounds[turn].set(statement, [index])
    else group.push(index)
  }
  const keyOf = (index: number) => writes[index]?.[1] as Key
  return rounds.flatMap(round =>
    [...round].map(([statement, indexes]) => ({
      statement,
      indexes: indexes.sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1)),
    })),
  )
}

function columnsOf(writes: readonly Write[]): unknown[][] {
  const width = (writes[0]?.length ?? 1) - 1
  return Array.from({ length: width }, (_, column) => writes.map(write => write[column + 1]))
}
