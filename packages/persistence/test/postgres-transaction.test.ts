import { EventEmitter } from 'node:events'
import fc from 'fast-check'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { Change } from '../src/group-commit.ts'
import type { Connection } from '../src/postgres/connection.ts'
import { statements } from '../src/postgres/statements.ts'
import { groupChanges, retrying, runTransaction } from '../src/postgres/transaction.ts'

const anyChange = fc.oneof(
  { weight: 8, arbitrary: fc.tuple(fc.constantFrom('insertPlant', 'savePlant'), fc.bigInt(0n, 5n)) },
  {
    weight: 4,
    arbitrary: fc.tuple(fc.constantFrom('insertToken', 'removeToken'), fc.constantFrom('a', 'b')),
  },
  { weight: 1, arbitrary: fc.constantFrom(['beginSilence'], ['endSilence']) },
) as fc.Arbitrary<Change>

const isSilence = ([, key]: Change) => key === undefined
const subjectOf = ([, key]: Change) => (typeof key === 'bigint' ? key : 'named')

test('groups keep the order of each plant, of what has a name, and around a silence, and have as few statements as that takes', () => {
  const property = fc.property(fc.array(anyChange, { maxLength: 20 }), batch => {
    const groups = groupChanges(batch)
    const groupOf = new Map(groups.flatMap(({ indexes }, group) => indexes.map(index => [index, group])))
    expect(groupOf.size).toBe(batch.length)
    expect(groups.flatMap(({ indexes }) => indexes)).toHaveLength(batch.length)
    for (const { statement, indexes } of groups) {
      const changes = indexes.map(index => batch[index] as Change)
      expect(changes.map(([name]) => name)).toEqual(changes.map(() => statement))
      const keys = changes.map(([, key]) => key as bigint | string)
      expect(keys).toEqual([...new Set(keys)].sort((a, b) => (a < b ? -1 : 1)))
    }
    for (const [later, change] of batch.entries()) {
      const before = batch.slice(0, later).map((other, earlier) => ({ other, earlier }))
      const ordered = before.filter(
        ({ other }) => isSilence(change) || isSilence(other) || subjectOf(other) === subjectOf(change),
      )
      for (const { earlier } of ordered) expect(groupOf.get(earlier)).toBeLessThan(groupOf.get(later) ?? -1)
    }
  })
  fc.assert(property, { numRuns: 1_000 })
  const created = [5n, 3n, 4n].map((id): Change => ['insertPlant', id])
  const replaced = [3n, 5n].map((id): Change => ['savePlant', id])
  expect(groupChanges([...created, ...replaced])).toEqual([
    { statement: 'insertPlant', indexes: [1, 2, 0] },
    { statement: 'savePlant', indexes: [3, 4] },
  ])
})

/** A connection that answers each statement with the keys of the rows that it changed. */
function connection({ isPooled = false, notice = '' } = {}) {
  const sent: unknown[] = []
  const client = Object.assign(new EventEmitter(), {
    isPooled,
    lastTurn: Promise.resolve() as Promise<unknown>,
    begin: () => 'begin',
    async query(query: string | { name?: string; text: string; values: unknown[][]; rowMode: 'array' }) {
      const isText = typeof query === 'string'
      sent.push(isText ? query : { name: query.name, isKnown: query.text, values: query.values })
      await new Promise(setImmediate)
      if (query === 'commit' || (!isText && notice)) client.emit('notice', { code: notice })
      if (!isText && query.values[0]?.includes(13n)) throw new Error('refused')
      const keys = isText ? [] : (query.values[0] ?? []).filter(key => key !== 2n)
      return { rows: keys.map(key => (!isText && query.rowMode === 'array' ? [key] : { key })) }
    },
  })
  return { client: client as unknown as Connection, sent }
}

const query = (name: 'insertPlant' | 'removePlant', isNamed: boolean, ...values: unknown[]) => ({
  name: isNamed ? name : undefined,
  isKnown: statements.change[name],
  values,
})

test('one kind of change is one statement, several are a transaction, and each change has its own rows', async () => {
  const { client, sent } = connection()
  const inserts: Change[] = [
    ['insertPlant', 2n, 'b', null],
    ['insertPlant', 1n, 'a', 'tag'],
  ]
  expect(await runTransaction(client, inserts)).toEqual([0, 1])
  const insert = [
    [1n, 2n],
    ['a', 'b'],
    ['tag', null],
  ]
  expect(sent.splice(0)).toEqual([query('insertPlant', true, ...insert)])
  expect(await runTransaction(client, [...inserts, ['removePlant', 1n], ['removePlant', 2n]])).toEqual([
    0, 1, 1, 0,
  ])
  const remove = query('removePlant', true, [1n, 2n])
  expect(sent).toEqual(['begin', query('insertPlant', true, ...insert), remove, 'commit'])
})

test('behind a pooler transactions take turns, and prepare nothing', async () => {
  const { client, sent } = connection({ isPooled: true })
  const refused = runTransaction(client, [['removePlant', 13n]])
  const next = runTransaction(client, [['removePlant', 1n]])
  expect(await Promise.allSettled([refused, next])).toEqual([
    { status: 'rejected', reason: new Error('refused') },
    { status: 'fulfilled', value: [1] },
  ])
  const turn = (id: bigint) => ['begin', query('removePlant', false, [id]), 'commit']
  expect(sent).toEqual([...turn(13n), ...turn(1n)])
})

test('a commit that did not wait for its standby is no success, and a notice of another kind says nothing', async () => {
  const change: Change = ['removePlant', 1n]
  const warned = connection({ notice: '01000' }).client
  await expect(runTransaction(warned, [change])).rejects.toThrow('did not wait for its standby')
  expect(warned.listenerCount('notice')).toBe(0)
  expect(await runTransaction(connection({ notice: '00000' }).client, [change])).toEqual([1])
})

const coded = (code?: string) => Object.assign(new Error('rolled back'), { code })

test.each(['40001', '40P01'])(
  'what the server rolled back with %s is tried ten times, less and less often',
  async code => {
    const random = vi.spyOn(Math, 'random').mockReturnValue(1)
    onTestFinished(() => random.mockRestore())
    let attempts = 0
    const attemptOf = (failures: number) => async () => {
      if (attempts++ < failures) throw coded(code)
      return 'done'
    }
    const begunMs = performance.now()
    expect(await retrying(60_000, attemptOf(4))).toBe('done')
    const waitedMs = 2 + 4 + 8 + 16
    // A timer may be a millisecond early.
    expect(performance.now() - begunMs).toBeGreaterThan(waitedMs - 4)
    random.mockReturnValue(0)
    // Of a process that has run for long.
    const clock = vi.spyOn(performance, 'now').mockReturnValue(1e9)
    onTestFinished(() => clock.mockRestore())
    attempts = 0
    expect(await retrying(60_000, attemptOf(9))).toBe('done')
    attempts = 0
    await expect(retrying(60_000, attemptOf(100))).rejects.toThrow('rolled back')
    expect(attempts).toBe(10)
  },
)

test('what is too late, or failed otherwise, is not tried again', async () => {
  let attempts = 0
  const fail = async (code?: string) => {
    attempts++
    await new Promise(setImmediate)
    throw coded(code)
  }
  for (const code of ['23505', undefined]) await expect(retrying(60_000, () => fail(code))).rejects.toThrow()
  await expect(retrying(0, () => fail('40001'))).rejects.toThrow()
  expect(attempts).toBe(3)
})
