import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { DomainError, type Plant, parsePlant } from '@plant-store/domain'
import {
  createDatabase,
  type PostgresServer,
  query,
  startPostgres,
  type TestDatabase,
} from '@plant-store/harness/postgres'
import {
  openReader,
  openStorage,
  planOpening,
  type Storage,
} from '@plant-store/persistence'
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
import { startProxy } from './proxy.ts'

/** How long the store may take to answer, and what a busy machine may add to it. */
const timeoutMs = 1_000
const slackMs = 1_000

let server: PostgresServer
let database: TestDatabase
let storage: Storage

const plant = (id: bigint, name = 'x'): Plant => parsePlant({ id, name })
const open = (url = database.url) => openStorage({ url, timeoutMs })

beforeAll(async () => {
  server = await startPostgres()
  database = await createDatabase(server.url)
})
beforeEach(async () => {
  storage = await open()
  await database.query('truncate plants')
})
afterEach(async () => {
  await storage[Symbol.asyncDispose]()
  await setForDatabase('reset all')
})
afterAll(() => server[Symbol.asyncDispose]())

const cutConnections = () =>
  database.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
  )

describe('under a load of creates', () => {
  const faults: Record<string, () => Promise<void>> = {
    'a server that is killed': async () => {
      await server.kill()
      await server.start()
    },
    'connections that are cut': async () => {
      for (let round = 0; round < 5; round++) {
        await cutConnections()
        await sleep(20)
      }
    },
  }

  for (const [name, happen] of Object.entries(faults)) {
    test(`${name}: no wrong answer, and it recovers`, { timeout: 30_000 }, async () => {
      await using load = startLoad()
      await load.succeeds()
      await happen()
      await load.succeeds()
      const { inserted, unknown, slowestMs } = await load.stop()

      expect(slowestMs).toBeLessThan(timeoutMs + slackMs)
      const kept = new Set(
        (await database.query('select id from plants')).map(({ id }) =>
          BigInt(id as string),
        ),
      )
      expect(inserted.filter(id => !kept.has(id))).toEqual([])
      expect(inserted.length + unknown.length).toBeGreaterThanOrEqual(kept.size)
      // Together: after a slow recovery there are tens of thousands.
      for (let from = 0; from < unknown.length; from += 1_000) {
        const ids = unknown.slice(from, from + 1_000)
        const again = await Promise.all(ids.map(id => storage.plants.insert(plant(id))))
        expect(again).toEqual(ids.map(id => (kept.has(id) ? 'id-taken' : 'inserted')))
      }
    })
  }
})

/** Creates with new ids, some at once, until it is stopped. */
function startLoad() {
  const inserted: bigint[] = []
  const unknown: bigint[] = []
  let slowestMs = 0
  let next = 0n
  let running = true

  const worker = async () => {
    while (running) {
      const id = next++
      const startedMs = performance.now()
      try {
        expect(await storage.plants.insert(plant(id))).toBe('inserted')
        inserted.push(id)
      } catch (error) {
        if (!(error instanceof DomainError) || error.code !== 'store-unavailable') {
          throw error
        }
        unknown.push(id)
        // A client that is told to come again does not come at once.
        await sleep(5)
      }
      slowestMs = Math.max(slowestMs, performance.now() - startedMs)
    }
  }
  const workers = Promise.all(Array.from({ length: 32 }, worker))

  return {
    /** Resolves once a hundred more creates have succeeded. */
    async succeeds() {
      const before = inserted.length
      while (inserted.length < before + 100) {
        await Promise.race([sleep(5), workers])
      }
    },
    async stop() {
      running = false
      await workers
      return { inserted, unknown, slowestMs }
    },
    async [Symbol.asyncDispose]() {
      running = false
      await workers.catch(() => {})
    },
  }
}

test('does not wait longer than it may for a lock, and goes on when it is free', async () => {
  await storage.plants.insert(plant(1n))
  await using other = await session()
  await other.query('begin; lock table plants in access exclusive mode')
  const answers = Array.from({ length: 200 }, (_, n) =>
    unavailable(
      n % 2 === 0
        ? storage.plants.find(plant(1n).id)
        : storage.plants.insert(plant(BigInt(n))),
    ),
  )
  await nextTurn()
  // It would have its turn only after those, and as much time as they had.
  const late = storage.plants.insert(plant(1_000n))
  await expect(late).rejects.toMatchObject({
    code: 'store-unavailable',
    message: 'the store did not answer in time',
  })
  await Promise.all(answers)
  await other.query('rollback')
  expect((await eventually(() => storage.plants.find(plant(1n).id)))?.plant).toEqual(
    plant(1n),
  )
  expect(await eventually(() => storage.plants.insert(plant(-1n)))).toBe('inserted')
})

describe('a server that takes no writes', () => {
  test('by a setting that comes and goes while connections stay', async () => {
    await storage.check()
    await alterSystem('default_transaction_read_only', 'on')
    await eventually(async () => unavailable(storage.check()))
    await unavailable(storage.plants.insert(plant(1n)))
    await alterSystem('default_transaction_read_only', 'off')
    expect(await eventually(() => storage.plants.insert(plant(1n)))).toBe('inserted')
    await eventually(() => storage.check())
  })

  test('because it is a standby, until it is promoted', async () => {
    await storage.plants.insert(plant(1n))
    await server.stop()
    await server.start({ asStandby: true })
    await unavailable(storage.plants.insert(plant(2n)))
    await unavailable(storage.check())
    await expect(open()).rejects.toThrow('does not accept writes')
    await database.query('select pg_promote()')
    expect(await eventually(() => storage.plants.insert(plant(2n)))).toBe('inserted')
    expect((await storage.plants.find(plant(1n).id))?.plant).toEqual(plant(1n))
  })
})

describe('of two hosts that accept writes', () => {
  const urlOf = (hosts: readonly string[], databaseName = 'postgres') => {
    const { username, password } = new URL(server.url)
    return `postgres://${username}:${password}@${hosts.join(',')}/${databaseName}`
  }

  test('none is taken, because changes on one are missing on the other', async () => {
    const hosts = [server.url, inject('postgresUrl')].map(url => new URL(url).host)
    const [first, second] = [...hosts].sort()
    const reason = `${first} and ${second} both accept writes: stop the one that is not the primary`

    await expect(open(urlOf(hosts))).rejects.toThrow(reason)
    await expect(planOpening(urlOf(hosts))).rejects.toThrow(reason)
    await expect(openReader(urlOf(hosts))).rejects.toThrow(reason)
  })

  test('either is taken if they are one server by two names', async () => {
    const { host, port, pathname } = new URL(database.url)
    const url = urlOf([host, `localhost:${port}`], pathname.slice(1))

    await using same = await open(url)

    expect(await same.plants.insert(plant(1n))).toBe('inserted')
  })

  test('none is taken once a former primary comes back', async () => {
    const name = new URL(database.url).pathname.slice(1)
    const hosts = [inject('postgresUrl'), server.url].map(url => new URL(url).host)
    await using far = await open(urlOf(hosts, name))
    await far.plants.insert(plant(1n))

    await query(inject('postgresUrl'), `create database ${name}`)
    try {
      await cutConnections()
      await eventually(async () => {
        const failure = await far.plants.insert(plant(2n)).catch(error => error)
        expect(failure.cause?.message).toMatch(/both accept writes/)
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

test('a transaction that the server takes back is tried again', async () => {
  await setForDatabase(`set default_transaction_isolation = 'serializable'`)
  await using strict = await open()
  await using other = await session()
  await other.query(`begin; insert into plants values (1, 'theirs')`)
  const outcome = strict.plants.insert(plant(1n, 'ours'))
  const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`
  while ((await database.query(waiting)).length === 0) {
    await sleep(5)
  }
  await other.query('commit')
  expect(await outcome).toBe('id-taken')
  expect((await strict.plants.find(plant(1n).id))?.plant).toEqual(plant(1n, 'theirs'))
})

describe('a commit of unknown outcome', () => {
  test('because the connection ended before the answer: a retry reports the true outcome', async () => {
    await using proxy = await startProxy(database.url)
    await using far = await open(proxy.url)
    expect(await far.plants.insert(plant(1n))).toBe('inserted')
    // Of two statements: the server begins with an answer, and has both without another one.
    proxy.swallowAnswersAfter(1)
    const outcome = Promise.all(
      [far.plants.insert(plant(2n)), far.plants.save(plant(3n))].map(each =>
        unavailable(each),
      ),
    )
    while ((await database.query('select 1 from plants where id = 2')).length === 0) {
      await sleep(5)
    }
    proxy.cut()
    await outcome
    expect(await eventually(() => far.plants.insert(plant(2n)))).toBe('id-taken')
  })

  test('because nothing comes back any more: it answers in time, and recovers', async () => {
    await using proxy = await startProxy(database.url)
    await using far = await open(proxy.url)
    expect(await far.plants.insert(plant(1n))).toBe('inserted')
    proxy.swallowAnswersAfter(0)
    await Promise.all([
      unavailable(far.plants.insert(plant(2n))),
      unavailable(far.plants.find(plant(1n).id)),
    ])
    await unavailable(far.check())
    proxy.cut()
    expect(await eventually(() => far.plants.insert(plant(2n)))).toBe('id-taken')
  })

  test('because a synchronous standby is missing, and nobody calls it a success', async () => {
    await alterSystem('synchronous_standby_names', 'nobody')
    await setForDatabase('set synchronous_commit = off')
    await setForDatabase('set client_min_messages = error')
    try {
      // With the database's own defaults it would not wait, and not be warned.
      await using careful = await open()
      await unavailable(careful.plants.insert(plant(1n)))
      await using other = await openStorage({ url: database.url, timeoutMs: 30_000 })
      const outcome = other.plants.insert(plant(2n)).catch(error => error)
      const waiting = `from pg_stat_activity where wait_event = 'SyncRep' and datname = current_database()`
      while ((await database.query(`select 1 ${waiting}`)).length < 2) {
        await sleep(5)
      }
      // What an operator may do. The server then says that the commit succeeded, and warns that it may be lost.
      await database.query(`select pg_cancel_backend(pid) ${waiting}`)
      expect(await outcome).toMatchObject({ code: 'store-unavailable' })
    } finally {
      await alterSystem('synchronous_standby_names', '')
    }
    expect(await eventually(() => storage.plants.insert(plant(1n)))).toBe('id-taken')
    expect(await eventually(() => storage.plants.insert(plant(3n)))).toBe('inserted')
  })
})

test('a server that falls silent at any point of a start makes it fail in time', async () => {
  const openThrough = async (pieces: number) => {
    await using proxy = await startProxy(database.url)
    proxy.swallowAnswersAfter(pieces)
    const startedMs = performance.now()
    const opened = await openStorage({ url: proxy.url, timeoutMs }).catch(error => error)
    expect(performance.now() - startedMs, `after ${pieces} pieces`).toBeLessThan(
      timeoutMs + 500 + slackMs,
    )
    proxy.cut()
    if (opened instanceof Error) {
      return false
    }
    await opened[Symbol.asyncDispose]()
    return true
  }
  const opened = await Promise.all(
    Array.from({ length: 16 }, (_, pieces) => openThrough(pieces)),
  )
  expect(opened.indexOf(true)).toBeGreaterThan(3)
  expect(opened.at(-1)).toBe(true)
})

/** Fails unless it is refused with `store-unavailable`, in time. */
async function unavailable(work: Promise<unknown>): Promise<void> {
  const startedMs = performance.now()
  await expect(work).rejects.toMatchObject({
    name: 'DomainError',
    code: 'store-unavailable',
  })
  expect(performance.now() - startedMs).toBeLessThan(timeoutMs + slackMs)
}

/** Tries again as long as the store is unavailable, as a client would. */
const eventually = <Result>(work: () => Promise<Result>) => vi.waitFor(work, 10_000)

async function session() {
  const client = new pg.Client({ connectionString: database.url })
  client.on('error', () => {})
  await client.connect()
  return {
    query: (sql: string) => client.query(sql),
    [Symbol.asyncDispose]: () => client.end(),
  }
}

/** Commits nothing that a standby would have to confirm. */
async function setForDatabase(change: string): Promise<void> {
  const name = new URL(database.url).pathname.slice(1)
  await database.query(`set synchronous_commit = local; alter database ${name} ${change}`)
}

async function alterSystem(name: string, value: string): Promise<void> {
  await using own = await session()
  await own.query(
    'set default_transaction_read_only = off; set synchronous_commit = local',
  )
  await own.query(`alter system set ${name} = '${value}'`)
  await own.query('select pg_reload_conf()')
  const current = `select 1 from pg_settings where name = '${name}' and setting = '${value}'`
  while ((await database.query(current)).length === 0) {
    await sleep(5)
  }
}
