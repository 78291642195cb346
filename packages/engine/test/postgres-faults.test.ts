import { setImmediate as nextTurn } from 'node:timers/promises'
import type { MainStorage } from '@plant-store/engine'
import {
  createDatabase,
  type PostgresServer,
  query,
  startPostgres,
  type TestDatabase,
} from '@plant-store/harness/postgres'
import { startProxy } from '@plant-store/harness/postgres-proxy'
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
import {
  type Entered,
  inspectStore,
  note,
  notesFrom,
  openReader,
  openStorage,
  planOpening,
} from './notes.ts'

/** How long the store may take to answer. */
const timeoutMs = 1_000

let server: PostgresServer
let database: TestDatabase
let storage: MainStorage<Entered>

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

test('a table that is locked for long delays no answer beyond the limit', async () => {
  expect(storage.share(), 'each thread has the limit').toMatchObject({
    server: { timeoutMs },
  })
  await storage.notes.insert(note(1))
  await using other = await openSession()
  await other.query('begin; lock table notes in access exclusive mode')
  const reads = Array.from({ length: 100 }, () => storage.notes.find(1n))
  const changes = notesFrom(0, 100).map(storage.notes.insert)
  const refusals = Promise.all([...reads, ...changes].map(refusalOf))
  await nextTurn()

  // Its turn comes after those, when as much time has passed.
  const late = storage.notes.insert(note(1_000))

  await expect(late).rejects.toMatchObject({
    code: 'store-unavailable',
    message: 'the store did not answer in time',
  })
  await refusals
  await other.query('rollback')
  expect(await eventually(() => storage.notes.find(1n))).toEqual(note(1))
  expect(await eventually(() => storage.notes.insert(note(-1)))).toBe(true)
})

test('a standby is an outage and only read, until it is promoted', async () => {
  await storage.notes.insert(note(1))
  await server.stop()
  await server.start({ asStandby: true })

  await refusalOf(storage.notes.insert(note(2)))
  await refusalOf(storage.check())
  await expect(open()).rejects.toThrow('does not accept writes')
  const report = await inspectStore(database.url)
  await database.query('select pg_promote()')
  const outcome = await eventually(() => storage.notes.insert(note(2)))

  expect(report).toMatchObject({ counts: { notes: 1 } })
  expect(outcome).toBe(true)
  expect(await storage.notes.find(1n)).toEqual(note(1))
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
    await expect(planOpening(urlOf(hosts))).rejects.toThrow(reason)
    await expect(openReader(urlOf(hosts))).rejects.toThrow(reason)
  })

  test('either is taken if they are one server by two names', async () => {
    const { host, port } = new URL(database.url)
    const url = urlOf([host, `localhost:${port}`], database.name)

    await using sameStorage = await open(url)
    const outcome = await sameStorage.notes.insert(note(1))

    expect(outcome).toBe(true)
  })

  test('none is taken once a former primary comes back', async () => {
    const { name } = database
    const hosts = [hostOf(inject('postgresUrl')), hostOf(server.url)]
    await using farStorage = await open(urlOf(hosts, name))
    await farStorage.notes.insert(note(1))

    await query(inject('postgresUrl'), `create database ${name}`)
    try {
      await cutConnections()

      await eventually(async () => {
        const refusal = await refusalOf(farStorage.notes.insert(note(2)))
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

  const inserting = strictStorage.notes.insert(note(1, 'ours'))
  await waitForSessions(`wait_event_type = 'Lock'`, 1)
  await other.query('commit')
  const outcome = await inserting

  expect(outcome).toBe(false)
  const found = await strictStorage.notes.find(1n)
  expect(found).toEqual(note(1, 'theirs'))
})

describe('a commit of unknown outcome', () => {
  test('is refused if the connection ends, and a retry tells the truth', async () => {
    await using proxy = await startProxy(database.url)
    await using farStorage = await open(proxy.url)
    const { notes } = farStorage
    await notes.insert(note(1))
    // A group of two changes begins with an answer. Its commit is the next one.
    proxy.swallowAnswersAfter(1)

    const changes = [notes.insert(note(2)), notes.save(note(3))]
    const refusals = Promise.all(changes.map(refusalOf))
    await expect
      .poll(() => database.query('select 1 from notes where id = 2'))
      .toHaveLength(1)
    proxy.cut()
    await refusals
    const outcome = await eventually(() => notes.insert(note(2)))

    expect(outcome).toBe(false)
  })

  test('is refused in time if nothing comes back, and the store recovers', async () => {
    await using proxy = await startProxy(database.url)
    await using farStorage = await open(proxy.url)
    const { notes } = farStorage
    await notes.insert(note(1))
    proxy.swallowAnswersAfter(0)

    const inserting = notes.insert(note(2))
    const reading = notes.find(1n)
    await Promise.all([refusalOf(inserting), refusalOf(reading)])
    await refusalOf(farStorage.check())
    proxy.cut()
    const outcome = await eventually(() => notes.insert(note(2)))

    expect(outcome).toBe(false)
  })

  test('is refused if it is not on the standby, whatever settings say', async () => {
    await using own = await createDatabase(server.url)
    await alterSystem('synchronous_standby_names', 'nobody')
    await setForDatabase('set synchronous_commit = off')
    await setForDatabase('set client_min_messages = error')
    try {
      await using impatient = await open()
      await refusalOf(impatient.notes.insert(note(1)))
      await using patient = await openStorage({ url: database.url, timeoutMs: 30_000 })
      const inserting = patient.notes.insert(note(2)).catch(error => error)
      await waitForSessions(`wait_event = 'SyncRep'`, 2)
      const opening = openStorage({ url: own.url, timeoutMs: 30_000 })
      const refusal = expect(opening).rejects.toThrow('did not wait for its standby')
      const waiting = `from pg_stat_activity where wait_event = 'SyncRep'`
      await expect.poll(() => own.query(`select 1 ${waiting}`)).toHaveLength(3)

      // An operator may do this. The server then reports a success, with a warning.
      await database.query(`select pg_cancel_backend(pid) ${waiting}`)

      expect(await inserting).toMatchObject({ code: 'store-unavailable' })
      await refusal
    } finally {
      await alterSystem('synchronous_standby_names', '')
    }
    const again = await eventually(() => storage.notes.insert(note(1)))
    const another = await eventually(() => storage.notes.insert(note(3)))
    expect([again, another]).toEqual([false, true])
  })
})

test('a start fails at whatever point its server falls silent', async () => {
  /** Whether a store opens whose server falls silent after some pieces of its answers. */
  async function isOpenAfter(pieces: number): Promise<boolean> {
    await using proxy = await startProxy(database.url)
    proxy.swallowAnswersAfter(pieces)
    const opened = await open(proxy.url).catch(() => undefined)
    proxy.cut()
    await opened?.[Symbol.asyncDispose]()
    return opened !== undefined
  }
  const pieces = Array.from({ length: 10 }, (_, count) => count)

  // A start that never failed would keep the test from its end.
  const areOpen = await Promise.all(pieces.map(isOpenAfter))

  // How many pieces a start needs depends on the network, and is at least four. Whether
  // one that gets enough is open in a second depends on the machine.
  expect(areOpen.slice(0, 4)).toEqual([false, false, false, false])
})

/**
 * Resolves to the reason that operators see.
 *
 * @throws Error unless the work is refused with `store-unavailable`
 */
async function refusalOf(work: Promise<unknown>): Promise<string> {
  const outcome = await work.catch((error: Error) => error)
  expect(outcome).toMatchObject({ name: 'StoreError', code: 'store-unavailable' })
  const { cause } = outcome as Error
  return cause instanceof Error ? cause.message : ''
}

/** Tries again while the store is unavailable, as a client would. */
function eventually<Result>(work: () => Promise<Result>): Promise<Result> {
  return vi.waitFor(work, 30_000)
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

async function cutConnections() {
  await database.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()`,
  )
}

/** Waits for this number of sessions in a state. */
async function waitForSessions(condition: string, count: number) {
  const sessions = `select 1 from pg_stat_activity
    where datname = current_database() and ${condition}`
  await expect.poll(() => database.query(sessions)).toHaveLength(count)
}

/** Changes settings of the database, in a commit that waits for no standby. */
async function setForDatabase(change: string) {
  await database.query(
    `set synchronous_commit = local; alter database ${database.name} ${change}`,
  )
}

async function alterSystem(name: string, value: string) {
  await using session = await openSession()
  await session.query('set synchronous_commit = local')
  await session.query(`alter system set ${name} = '${value}'`)
  await session.query('select pg_reload_conf()')
  const current = `select 1 from pg_settings where name = '${name}' and setting = '${value}'`
  await expect.poll(() => database.query(current)).toHaveLength(1)
}
