import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Storage, storesOf } from '@plant-store/engine'
import {
  createDatabase,
  type PostgresServer,
  query,
  startPostgres,
  type TestDatabase,
} from '@plant-store/harness/postgres'
import pg from 'pg'
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  inject,
  test,
  vi,
} from 'vitest'
import { CreateLoad } from './create-load.ts'
import { type Entered, entities, note, openStorage } from './notes.ts'
import { startProxy } from './proxy.ts'

/** How long the store may take to answer. */
const timeoutMs = 1_000
/** A step that took the default timeout, and not that of the options, would take 5 s. */
const slackMs = 3_000

let server: PostgresServer
let database: TestDatabase
let storage: Storage<Entered>

const stores = storesOf(entities)
const open = (url = database.url) => openStorage({ url, timeoutMs })

beforeAll(async () => {
  server = await startPostgres()
  database = await createDatabase(server.url)
})
beforeEach(async () => {
  storage = await open()
  await database.query('truncate notes')
})
afterEach(async () => {
  await storage[Symbol.asyncDispose]()
  await setForDatabase('reset all')
})
afterAll(() => server[Symbol.asyncDispose]())

describe('creates', () => {
  test('are stored or refused while the server is killed and starts again', async () => {
    await using load = new CreateLoad(storage.notes)
    await load.succeeds()
    await server.kill()
    await server.start()
    await load.succeeds()

    await checkLoad(load)
  })

  test('are stored or refused while connections are cut', async () => {
    await using load = new CreateLoad(storage.notes)
    for (let round = 0; round < 5; round++) {
      await load.succeeds()
      await cutConnections()
    }
    await load.succeeds()

    await checkLoad(load)
  })
})

/** Checks that every answer was in time and right, and that a retry tells the truth. */
async function checkLoad(load: CreateLoad): Promise<void> {
  const { insertedIds, unknownIds, slowestMs } = await load.stop()
  const rows = await database.query('select id from notes')
  const stored = new Set(rows.map(({ id }) => BigInt(`${id}`)))

  const lostIds = insertedIds.filter(id => !stored.has(id))
  expect(lostIds).toEqual([])
  expect(insertedIds.length + unknownIds.length).toBeGreaterThanOrEqual(stored.size)
  expect(slowestMs).toBeLessThan(timeoutMs + slackMs)
  const wrongRetries = await retry(unknownIds, stored)
  expect(wrongRetries).toEqual([])
}

/** Creates notes again, and returns the ids of which the answer is wrong. */
async function retry(
  ids: readonly bigint[],
  stored: ReadonlySet<bigint>,
): Promise<readonly bigint[]> {
  const wrongIds: bigint[] = []
  // After a slow recovery there are tens of thousands, more than may be pending at once.
  for (let start = 0; start < ids.length; start += 1_000) {
    const some = ids.slice(start, start + 1_000)
    const retries = some.map(id => storage.notes.insert(note(id)))
    const outcomes = await Promise.all(retries)
    const wrong = some.filter((id, index) => {
      const expected = !stored.has(id)
      return outcomes[index] !== expected
    })
    wrongIds.push(...wrong)
  }
  return wrongIds
}

describe('a table that is locked for long', () => {
  test('delays no answer beyond the time limit', async () => {
    await storage.notes.insert(note(1n))
    await using other = await openSession()
    await other.query('begin; lock table notes in access exclusive mode')
    const { id } = note(1n)
    const reads = Array.from({ length: 100 }, () => storage.notes.find(id))
    const changes = Array.from({ length: 100 }, (_, number) =>
      storage.notes.insert(note(BigInt(number))),
    )
    const refusals = Promise.all([...reads, ...changes].map(refusalOf))
    await nextTurn()

    // Its turn comes after those, when as much time has passed.
    const late = storage.notes.insert(note(1_000n))

    await expect(late).rejects.toMatchObject({
      code: 'store-unavailable',
      message: 'the store did not answer in time',
    })
    await refusals
    await other.query('rollback')
    const found = await eventually(() => storage.notes.find(id))
    expect(found).toEqual(note(1n))
    const outcome = await eventually(() => storage.notes.insert(note(-1n)))
    expect(outcome).toBe(true)
  })
})

describe('a server that takes no writes', () => {
  test('is an outage while a setting forbids them', async () => {
    await storage.check()
    await alterSystem('default_transaction_read_only', 'on')

    await eventually(() => refusalOf(storage.check()))
    await refusalOf(storage.notes.insert(note(1n)))
    await alterSystem('default_transaction_read_only', 'off')
    const outcome = await eventually(() => storage.notes.insert(note(1n)))

    expect(outcome).toBe(true)
    await eventually(() => storage.check())
  })

  test('is an outage while it is a standby, until it is promoted', async () => {
    await storage.notes.insert(note(1n))
    await server.stop()
    await server.start({ asStandby: true })

    await refusalOf(storage.notes.insert(note(2n)))
    await refusalOf(storage.check())
    await expect(open()).rejects.toThrow('does not accept writes')
    await database.query('select pg_promote()')
    const outcome = await eventually(() => storage.notes.insert(note(2n)))
    const found = await storage.notes.find(note(1n).id)

    expect(outcome).toBe(true)
    expect(found).toEqual(note(1n))
  })
})

describe('of two hosts that accept writes', () => {
  const hostOf = (url: string) => new URL(url).host
  const urlOf = (hosts: readonly string[], databaseName = 'postgres') => {
    const { username, password } = new URL(server.url)
    return `postgres://${username}:${password}@${hosts.join(',')}/${databaseName}`
  }

  test('none is taken, because changes on one are missing on the other', async () => {
    const hosts = [hostOf(server.url), hostOf(inject('postgresUrl'))]
    const [first, second] = hosts.toSorted()
    const reason = `${first} and ${second} both accept writes: stop the one that is not the primary`

    await expect(open(urlOf(hosts))).rejects.toThrow(reason)
    await expect(stores.planOpening(urlOf(hosts))).rejects.toThrow(reason)
    await expect(stores.openReader(urlOf(hosts))).rejects.toThrow(reason)
  })

  test('either is taken if they are one server by two names', async () => {
    const { host, port, pathname } = new URL(database.url)
    const url = urlOf([host, `localhost:${port}`], pathname.slice(1))

    await using sameStorage = await open(url)
    const outcome = await sameStorage.notes.insert(note(1n))

    expect(outcome).toBe(true)
  })

  test('none is taken once a former primary comes back', async () => {
    const name = new URL(database.url).pathname.slice(1)
    const hosts = [hostOf(inject('postgresUrl')), hostOf(server.url)]
    await using farStorage = await open(urlOf(hosts, name))
    await farStorage.notes.insert(note(1n))

    await query(inject('postgresUrl'), `create database ${name}`)
    try {
      await cutConnections()

      await eventually(async () => {
        const refusal = await refusalOf(farStorage.notes.insert(note(2n)))
        expect(refusal).toMatch(/both accept writes/)
      })
    } finally {
      await query(inject('postgresUrl'), `drop database ${name} with (force)`)
    }
  })
})

test('a server that does not wait for the disk is refused', async () => {
  await alterSystem('fsync', 'off')
  try {
    await expect(open()).rejects.toThrow('its fsync is off')
  } finally {
    await alterSystem('fsync', 'on')
  }
})

test('a transaction that the server rolls back is tried again', async () => {
  await setForDatabase(`set default_transaction_isolation = 'serializable'`)
  await using strictStorage = await open()
  await using other = await openSession()
  await other.query(`begin; insert into notes values (1, 'theirs')`)

  const inserting = strictStorage.notes.insert(note(1n, 'ours'))
  await waitForSessions(`wait_event_type = 'Lock'`, 1)
  await other.query('commit')
  const outcome = await inserting

  expect(outcome).toBe(false)
  const found = await strictStorage.notes.find(note(1n).id)
  expect(found).toEqual(note(1n, 'theirs'))
})

describe('a commit of unknown outcome', () => {
  test('is refused if the connection ends, and a retry tells the truth', async () => {
    await using proxy = await startProxy(database.url)
    await using farStorage = await open(proxy.url)
    const { notes } = farStorage
    await notes.insert(note(1n))
    // A group of two changes begins with an answer. Its commit is the next one.
    proxy.swallowAnswersAfter(1)

    const changes = [notes.insert(note(2n)), notes.save(note(3n))]
    const refusals = Promise.all(changes.map(refusalOf))
    await expect
      .poll(() => database.query('select 1 from notes where id = 2'))
      .toHaveLength(1)
    proxy.cut()
    await refusals
    const outcome = await eventually(() => notes.insert(note(2n)))

    expect(outcome).toBe(false)
  })

  test('is refused in time if nothing comes back, and the store recovers', async () => {
    await using proxy = await startProxy(database.url)
    await using farStorage = await open(proxy.url)
    const { notes } = farStorage
    await notes.insert(note(1n))
    proxy.swallowAnswersAfter(0)

    const inserting = notes.insert(note(2n))
    const reading = notes.find(note(1n).id)
    await Promise.all([refusalOf(inserting), refusalOf(reading)])
    await refusalOf(farStorage.check())
    proxy.cut()
    const outcome = await eventually(() => notes.insert(note(2n)))

    expect(outcome).toBe(false)
  })

  test('is refused if it is not on the standby, whatever settings say', async () => {
    await alterSystem('synchronous_standby_names', 'nobody')
    await setForDatabase('set synchronous_commit = off')
    await setForDatabase('set client_min_messages = error')
    try {
      await using impatient = await open()
      await refusalOf(impatient.notes.insert(note(1n)))
      await using patient = await openStorage({ url: database.url, timeoutMs: 30_000 })
      const inserting = patient.notes.insert(note(2n)).catch(error => error)
      const isWaiting = `wait_event = 'SyncRep'`
      await waitForSessions(isWaiting, 2)

      // An operator may do this. The server then reports a success, with a warning.
      await database.query(
        `select pg_cancel_backend(pid) from pg_stat_activity
        where datname = current_database() and ${isWaiting}`,
      )

      expect(await inserting).toMatchObject({ code: 'store-unavailable' })
    } finally {
      await alterSystem('synchronous_standby_names', '')
    }
    const again = await eventually(() => storage.notes.insert(note(1n)))
    const another = await eventually(() => storage.notes.insert(note(3n)))
    expect([again, another]).toEqual([false, true])
  })
})

test('a new store that is not on the standby is refused', async () => {
  await using own = await createDatabase(server.url)
  await alterSystem('synchronous_standby_names', 'nobody')
  try {
    const opening = openStorage({ url: own.url, timeoutMs: 30_000 })
    const refusal = expect(opening).rejects.toThrow('did not wait for its standby')
    const waiting = `from pg_stat_activity
      where datname = current_database() and wait_event = 'SyncRep'`
    await expect.poll(() => own.query(`select 1 ${waiting}`)).toHaveLength(1)

    await own.query(`select pg_cancel_backend(pid) ${waiting}`)

    await refusal
  } finally {
    await alterSystem('synchronous_standby_names', '')
  }
})

describe('a server that falls silent during a start', () => {
  interface Start {
    readonly isOpen: boolean
    readonly tookMs: number
  }

  /** Starts a store whose server falls silent after some pieces of its answers. */
  async function startThrough(pieces: number): Promise<Start> {
    await using proxy = await startProxy(database.url)
    proxy.swallowAnswersAfter(pieces)
    const startedMs = performance.now()
    const opened = await open(proxy.url).catch(() => undefined)
    const tookMs = performance.now() - startedMs
    proxy.cut()
    await opened?.[Symbol.asyncDispose]()
    return { isOpen: opened !== undefined, tookMs }
  }

  test('makes it fail in time, at whatever point', async () => {
    const pieces = Array.from({ length: 24 }, (_, count) => count)

    const starts = await Promise.all(pieces.map(startThrough))

    const slowestMs = Math.max(...starts.map(({ tookMs }) => tookMs))
    expect(slowestMs).toBeLessThan(timeoutMs + 500 + slackMs)
    // How many pieces a start needs depends on the network, and is at least four. Whether
    // one that gets enough is open in a second depends on the machine.
    const openAtOnce = starts.slice(0, 4).filter(({ isOpen }) => isOpen)
    expect(openAtOnce).toEqual([])
  })
})

/**
 * Resolves to the reason that operators see.
 *
 * @throws Error unless the work is refused with `store-unavailable`, in time
 */
async function refusalOf(work: Promise<unknown>): Promise<string> {
  const startedMs = performance.now()
  const outcome = await work.catch((error: Error) => error)
  const tookMs = performance.now() - startedMs

  expect(outcome).toMatchObject({ name: 'StoreError', code: 'store-unavailable' })
  expect(tookMs).toBeLessThan(timeoutMs + slackMs)
  const { cause } = outcome as Error
  return cause instanceof Error ? cause.message : ''
}

/** Tries again while the store is unavailable, as a client would. */
function eventually<Result>(work: () => Promise<Result>): Promise<Result> {
  return vi.waitFor(work, 10_000)
}

interface Session extends AsyncDisposable {
  query(sql: string): Promise<unknown>
}

/** Opens a connection that is not the store's. */
async function openSession(): Promise<Session> {
  const client = new pg.Client({ connectionString: database.url })
  client.on('error', () => {})
  await client.connect()
  return {
    query: sql => client.query(sql),
    [Symbol.asyncDispose]: () => client.end(),
  }
}

async function cutConnections(): Promise<void> {
  await database.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()`,
  )
}

/** Waits for this number of sessions in a state. */
async function waitForSessions(condition: string, count: number): Promise<void> {
  const sessions = `select 1 from pg_stat_activity
    where datname = current_database() and ${condition}`
  await expect.poll(() => database.query(sessions)).toHaveLength(count)
}

/** Changes settings of the database, in a commit that waits for no standby. */
async function setForDatabase(change: string): Promise<void> {
  const name = new URL(database.url).pathname.slice(1)
  await database.query(`set synchronous_commit = local; alter database ${name} ${change}`)
}

async function alterSystem(name: string, value: string): Promise<void> {
  await using session = await openSession()
  await session.query('set default_transaction_read_only = off')
  await session.query('set synchronous_commit = local')
  await session.query(`alter system set ${name} = '${value}'`)
  await session.query('select pg_reload_conf()')
  const current = `select 1 from pg_settings where name = '${name}' and setting = '${value}'`
  await expect.poll(() => database.query(current)).toHaveLength(1)
}
