import type { Storage } from '@plant-store/engine'
import { until } from '@plant-store/harness'
import { hasPgbouncer, startPgbouncer } from '@plant-store/harness/pgbouncer'
import {
  type FaultyProxy,
  startProxy,
  type Tamper,
} from '@plant-store/harness/postgres-proxy'
import { anySeed, createRandom } from '@plant-store/harness/random'
import { createTestDatabase, needs } from '@plant-store/harness/vitest'
import { afterAll, expect, inject, test } from 'vitest'
import { type Entered, note, notesFrom, openStorage } from './notes.ts'
import { newFile } from './places.ts'

const database = await createTestDatabase()
afterAll(() => database[Symbol.asyncDispose]())

/** Chooses the faults of messages, of which the one with this number is decisive. */
type FaultAt = (number: number) => Tamper

const failing: FaultAt = faultAt => countingTamper(faultAt, 'spoil')
const lastToArrive: FaultAt = faultAt => countingTamper(faultAt, 'cut')
const lastAfterFailedBegin: FaultAt = faultAt => {
  const tamper = countingTamper(faultAt, 'cut')
  return message => tamper(message) ?? (message.startsWith('begin') ? 'spoil' : undefined)
}

function countingTamper(faultAt: number, fault: 'spoil' | 'cut'): Tamper {
  let number = 0
  return () => (number++ === faultAt ? fault : undefined)
}

test('a group is stored as a whole or not if any message fails', async () => {
  expect(await findTornGroups(database.url, failing)).toEqual([])
})

test('a group is stored as a whole or not after a begin that failed', async () => {
  expect(await findTornGroups(database.url, lastAfterFailedBegin)).toEqual([])
})

test(
  'a group is stored as a whole or not if it is cut before pgbouncer',
  needs('pgbouncer', hasPgbouncer),
  async () => {
    const settings = { pool_mode: 'transaction', default_pool_size: '8' }
    await using pooler = await startPgbouncer(inject('postgresUrl'), settings)
    const path = `${database.name}?pool_mode=transaction`
    const url = new URL(path, pooler.url).href

    expect(await findTornGroups(url, lastToArrive)).toEqual([])
  },
)

test('changes of one turn have the outcomes that they have on SQLite', async () => {
  const seed = anySeed()
  const { below, pick } = createRandom(seed)
  await using onSqlite = await openStorage({ url: `file:${newFile()}` })
  await using onPostgres = await openStorage({ url: database.url })
  await database.query('truncate notes')

  for (let turn = 0; turn < 50; turn++) {
    const changes = Array.from({ length: 24 }, (_, number) => {
      const name = pick(['notes', 'gardens'] as const)
      const changed = note(below(6), `change ${number}`)
      return pick<(storage: Storage<Entered>) => Promise<unknown>>([
        storage => storage[name].insert(changed),
        storage => storage[name].insert(changed),
        storage => storage[name].save(changed),
        storage => storage[name].save(changed),
        storage => storage[name].remove(changed.id),
        storage => storage[name].remove(changed.id),
        storage => storage[name].clear(),
      ])
    })
    const makeOn = (storage: Storage<Entered>) =>
      Promise.all(changes.map(change => change(storage)))
    const [outcomes, expected] = await Promise.all([makeOn(onPostgres), makeOn(onSqlite)])

    expect(outcomes, `turn ${turn}, seed ${seed}`).toEqual(expected)
  }
  for (const entity of ['notes', 'gardens'] as const) {
    const stored = await onPostgres[entity].page(10)
    expect(stored, `${entity}, seed ${seed}`).toEqual(await onSqlite[entity].page(10))
  }
})

/** The outcome of a group of changes. */
interface GroupOutcome {
  readonly faultAt: number
  readonly hasSucceeded: boolean
  /** The ids of the stored notes. */
  readonly storedIds: string
}

const idsBefore = '1,2'
const idsAfter = '2,3'

/**
 * Changes notes once for each message of a group, so that each message has the fault
 * once. Returns the outcomes that no server may have.
 */
async function findTornGroups(
  url: string,
  faultAt: FaultAt,
): Promise<readonly GroupOutcome[]> {
  await using proxy = await startProxy(url)
  await using storage = await openStorage({ url: proxy.url, timeoutMs: 5_000 })
  const torn: GroupOutcome[] = []
  for (let number = 0; ; number++) {
    await prepareNotes(storage)
    const { hasSucceeded, messages } = await changeThrough(
      proxy,
      storage,
      faultAt(number),
    )
    expect(messages, 'messages that could have a fault').toBeGreaterThan(0)
    const storedIds = await readIds()
    const isWhole = storedIds === idsAfter || (storedIds === idsBefore && !hasSucceeded)
    if (!isWhole) {
      torn.push({ faultAt: number, hasSucceeded, storedIds })
    }
    if (messages <= number) {
      return torn
    }
  }
}

/** Stores the notes 1 and 2. If the last connection was cut, this opens another. */
async function prepareNotes({ notes }: Storage<Entered>) {
  await database.query('truncate notes')
  const insert = () => notes.insertAll(notesFrom(1, 2))
  await insert().catch(insert)
}

/** Changes notes in one group while the proxy tampers with its messages. */
async function changeThrough(
  proxy: FaultyProxy,
  { notes }: Storage<Entered>,
  tamper: Tamper,
) {
  let messages = 0
  proxy.tamper(message => {
    messages++
    return tamper(message)
  })
  const changes = await Promise.allSettled([
    notes.save(note(3)),
    notes.remove(1n),
    notes.save(note(2, 'replaced')),
  ])
  proxy.tamper()
  await until('the server to end what it has got', isServerIdle)
  const hasSucceeded = changes.every(({ status }) => status === 'fulfilled')
  return { hasSucceeded, messages }
}

async function isServerIdle(): Promise<boolean> {
  const busy = await database.query(
    `select 1 from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()
      and (state <> 'idle' or wait_event <> 'ClientRead')`,
  )
  return busy.length === 0
}

async function readIds(): Promise<string> {
  const rows = await database.query('select id from notes order by id')
  return rows.map(({ id }) => id).join()
}
