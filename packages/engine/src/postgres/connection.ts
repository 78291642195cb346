import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { wordsOf } from '../errors.ts'
import type { PostgresOptions } from '../storage.ts'

/** Connections to the host that accepts writes. */
export interface ConnectionPool extends AsyncDisposable {
  /**
   * Runs queries in one transaction, and resolves to the result of each. Reads take one round trip, several changes two. If
   * it rejects, the transaction may have been committed, unless {@link wasRolledBack}.
   *
   * @throws Error also if the server was told to stop waiting for its standby, and reported the commit all the same
   */
  run(
    queries: readonly pg.QueryConfig[],
    isReading?: boolean,
  ): Promise<readonly pg.QueryResult[]>
  /** Begins a transaction, such as one that is `read only`, on a connection that ends with its disposal. */
  begin(mode?: string): Promise<pg.PoolClient & AsyncDisposable>
}

/** How much longer the client waits than the server, so that the server times out first and the connection survives. */
const serverHeadStartMs = 500
const idleTimeoutMs = 60_000
/** Between a failure of all hosts and the next attempt. */
const findAgainAfterMs = 100

const warning = '01000'
const int8 = 20

export function createPool(
  options: PostgresOptions,
  connectionsMax: number,
): ConnectionPool {
  const { statementTimeoutMs = options.timeoutMs, poolMode } = options
  const pools = options.hosts.map(host => createPoolOfHost(host, options, connectionsMax))
  let writable: Promise<pg.Pool> | undefined
  // Behind a transaction pooler, neither settings nor prepared statements outlive a transaction.
  const isPooled = poolMode === 'transaction'
  const begin = (mode = '') =>
    isPooled ? `begin ${mode}; ${set(statementTimeoutMs, true)}` : `begin ${mode}`

  const forget = () => {
    writable = undefined
  }
  const acquire = async () => {
    if (writable === undefined) {
      writable = findWritable(pools)
      writable.catch(() => setTimeout(forget, findAgainAfterMs).unref())
    }
    const pool = await writable
    return pool.connect().catch(error => {
      forget()
      throw error
    })
  }
  const transact = async (
    client: pg.PoolClient,
    queries: readonly pg.QueryConfig[],
    isReading: boolean,
  ) => {
    // A single statement is a transaction.
    if (queries.length === 1 && !isPooled) {
      return send(client, queries)
    }
    const sent = isPooled ? queries.map(({ name, ...unnamed }) => unnamed) : queries
    if (isReading) {
      return (await send(client, [begin(), ...sent, 'commit'])).slice(1, -1)
    }
    // If it failed, the server would make a transaction of each query after it, which does no harm to reads.
    await client.query(begin())
    return (await send(client, [...sent, 'commit'])).slice(0, -1)
  }

  return {
    async run(queries, isReading = false) {
      const client = await acquire()
      let isWarned = false
      const onNotice = ({ code }: { code?: string | undefined }) => {
        isWarned ||= code === warning
      }
      client.on('notice', onNotice)
      let isSound = false
      try {
        const results = await transact(client, queries, isReading)
        if (isWarned) {
          throw new Error('the server did not wait for its standby')
        }
        isSound = true
        return results
      } catch (error) {
        isSound = wasRolledBack(error)
        throw error
      } finally {
        client.off('notice', onNotice)
        client.release(!isSound)
        // The server may have become read-only.
        if (!isSound) {
          forget()
        }
      }
    },
    async begin(mode) {
      const client = await acquire()
      try {
        await client.query(begin(mode))
      } catch (error) {
        client.release(true)
        throw error
      }
      return Object.assign(client, {
        [Symbol.asyncDispose]: async () => client.release(true),
      })
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(pools.map(pool => pool.ending || pool.end()))
    },
  }
}

function createPoolOfHost(
  connectionString: string,
  { timeoutMs, statementTimeoutMs = timeoutMs, poolMode }: PostgresOptions,
  connectionsMax: number,
): pg.Pool {
  const pool = new pg.Pool({
    connectionString,
    max: connectionsMax,
    fallback_application_name: 'plant-store',
    connectionTimeoutMillis: timeoutMs,
    idleTimeoutMillis: idleTimeoutMs,
    query_timeout: statementTimeoutMs + serverHeadStartMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    pipeline: true,
    types: { getTypeParser },
    async onConnect(client) {
      // Queries in progress reject anyway. Without a listener the process would end.
      client.on('error', () => {})
      if (poolMode === 'session') {
        await client.query(set(statementTimeoutMs, false))
      }
    },
  })
  pool.on('error', () => {})
  return pool
}

/** Asks all hosts at once, so that a dead one costs no time, and returns the pool of the first that accepts writes. */
async function findWritable(pools: readonly pg.Pool[]): Promise<pg.Pool> {
  const attempts = pools.map(async pool => {
    const client = await pool.connect()
    try {
      const { rows } = await client.query(
        "select current_setting('transaction_read_only') = 'off' as is_writable",
      )
      if (!rows[0]?.is_writable) {
        throw new Error(`${client.host}:${client.port} does not accept writes`)
      }
      return pool
    } finally {
      client.release()
    }
  })
  return Promise.any(attempts).catch((cause: AggregateError) => {
    throw new Error([...new Set(cause.errors.map(describe))].join('; '), { cause })
  })
}

function describe(error: Error): string {
  // pg names an internal detail.
  if (/client password must be|^empty password/.test(error.message)) {
    return 'it requires a password, and the URL has none'
  }
  return wordsOf(error)
}

async function send(
  client: pg.PoolClient,
  queries: readonly (string | pg.QueryConfig)[],
): Promise<readonly pg.QueryResult[]> {
  const sent = queries.map(query => client.query(query))
  // Waits for all, so that none is in progress when it throws.
  await Promise.allSettled(sent)
  return Promise.all(sent)
}

/**
 * With these settings a commit is on disk, and on the synchronous standbys, whatever the server's default.
 *
 * @param isLocal whether they last only for the transaction
 */
function set(statementTimeoutMs: number, isLocal: boolean): string {
  return `
    select set_config('statement_timeout', '${statementTimeoutMs}', ${isLocal}), set_config(
      'synchronous_commit',
      case current_setting('synchronous_commit') when 'remote_apply' then 'remote_apply' else 'on' end,
      ${isLocal}
    )`
}

function getTypeParser(oid: number, format?: 'text' | 'binary') {
  return oid === int8 ? BigInt : pg.types.getTypeParser(oid, format as 'text')
}

/** Returns whether the server kept nothing of the transaction, so that a retry may succeed. */
export function wasRolledBack(error: unknown): boolean {
  const { code } = error as { code?: unknown }
  return code === serializationFailure || code === deadlock
}

const serializationFailure = '40001'
const deadlock = '40P01'

const attemptsMax = 10

/** Retries a transaction that the server rolled back, until it succeeds or the time is over. */
export async function retrying<Result>(
  timeoutMs: number,
  attempt: () => Promise<Result>,
): Promise<Result> {
  const startedMs = performance.now()
  for (let attempts = 1; ; attempts++) {
    try {
      return await attempt()
    } catch (error) {
      const isLate = performance.now() - startedMs > timeoutMs
      if (!wasRolledBack(error) || isLate || attempts === attemptsMax) {
        throw error
      }
      await sleep(Math.random() * 2 ** attempts)
    }
  }
}
