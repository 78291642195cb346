import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { PostgresOptions } from '../types.ts'
import { Connection } from './connection.ts'
import type { WarningListener } from './server-warnings.ts'
import { settingsQuery } from './session-settings.ts'

/**
 * How much longer the client waits than the server, so that the server times out first
 * and the connection survives.
 */
const serverHeadStartMs = 500

const idleTimeoutMs = 60_000

/**
 * How long a pool stays at the number of connections that the server allowed, before it
 * asks for another one.
 */
const growAgainAfterMs = 1_000

/** The pause before a pool that has no connection asks for one again. */
const connectAgainAfterMs = 200

const tooManyConnections = '53300'
const int8 = 20
const isOfThisClass = 'the pool makes its clients of this class'

/** A server that runs. It may be reached by several names. */
export interface Server {
  readonly name: string
  /** When the server started, in microseconds. No two servers share this. */
  readonly startedAt: string
  /** Whether it can be read and does not accept writes, such as a standby. */
  readonly isReadOnly: boolean
}

interface HostListeners {
  /**
   * Called when a connection failed, or all ended: the host may be the primary no more.
   */
  readonly onLost: () => void
  readonly onWarning: WarningListener
}

/**
 * Connections to one host. If the server allows fewer than the pool wants, transactions
 * share those.
 */
export class HostPool {
  readonly #pool: pg.Pool
  readonly #connectionsMax: number
  readonly #timeoutMs: number
  /** Runs while the pool is held at the size that the server allowed. */
  #growTimer: NodeJS.Timeout | undefined

  constructor(
    connectionString: string,
    options: PostgresOptions,
    connectionsMax: number,
    { onLost, onWarning }: HostListeners,
  ) {
    const { timeoutMs, statementTimeoutMs = timeoutMs } = options
    class Client extends Connection {
      constructor(config: pg.ClientConfig = {}) {
        super(config, onWarning)
      }
    }
    const pool = new pg.Pool({
      Client,
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
        assert(client instanceof Connection, isOfThisClass)
        if (options.poolMode === 'session') {
          await client.prepare(settingsQuery(options))
        }
      },
    })
    pool.on('error', onLost)
    pool.on('release', failure => {
      if (failure) {
        onLost()
      }
    })
    pool.on('remove', () => {
      if (pool.totalCount === 0) {
        onLost()
      }
    })
    this.#pool = pool
    this.#connectionsMax = connectionsMax
    this.#timeoutMs = timeoutMs
  }

  /** Waits for a connection while the server allows no further one, but not forever. */
  async connect(): Promise<Connection> {
    const lastAttemptMs = performance.now() + this.#timeoutMs - serverHeadStartMs
    for (;;) {
      try {
        const client = await this.#pool.connect()
        assert(client instanceof Connection, isOfThisClass)
        return client
      } catch (error) {
        const isLate = performance.now() > lastAttemptMs
        if (!isConnectionLimit(error) || isLate) {
          throw error
        }
      }
      this.#holdSize()
      if (this.#pool.totalCount === 0) {
        await sleep(connectAgainAfterMs)
      }
    }
  }

  /** Resolves to the server that the host is now. */
  async askServer(): Promise<Server> {
    const client = await this.connect()
    try {
      const server = await client.askRow<Omit<Server, 'name'>>(
        `select pg_postmaster_start_time()::text as "startedAt",
          current_setting('transaction_read_only') <> 'off' as "isReadOnly"`,
      )
      return { name: `${client.host}:${client.port}`, ...server }
    } finally {
      client.release()
    }
  }

  async end(): Promise<void> {
    clearTimeout(this.#growTimer)
    if (!this.#pool.ending) {
      await this.#pool.end()
    }
  }

  /** Lets transactions wait for the connections that there are. */
  #holdSize() {
    const { options, totalCount } = this.#pool
    options.max = Math.max(1, totalCount)
    this.#growTimer ??= setTimeout(() => {
      options.max = this.#connectionsMax
      this.#growTimer = undefined
    }, growAgainAfterMs).unref()
  }
}

/**
 * Returns whether the role, the database, the server or pgbouncer has as many connections
 * as it may have.
 */
function isConnectionLimit(error: unknown) {
  const { code, message } = error as pg.DatabaseError
  return code === tooManyConnections || message.startsWith('no more connections allowed')
}

function getTypeParser(oid: number, format?: 'text' | 'binary') {
  return oid === int8 ? BigInt : pg.types.getTypeParser(oid, format as 'text')
}
